package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/client"
)

// A story with everything in it: a refusal, a second try that passed others over, and what became of it.
func TestAnOrderIsToldInSentences(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time { return time.Date(2026, 3, 13, 10, 0, seconds, 0, time.UTC) }
	key, person := client.Actor{Kind: "key", ID: "key_1"}, client.Actor{Kind: "person", ID: "eve"}
	server := client.ReservedServer{ID: "srv_2", Name: "fsn1-r3-12", Site: "FSN1"}
	order := client.Order{
		OrderID: "A-1001",
		Decisions: []client.Decision{
			{
				ID: "dec_1", CreatedAt: at(1), OrderLine: "1", Unit: 1, Outcome: "no_capacity", Cause: "all_held", By: key,
				Text: "Every server that fits is held or sold.", SeenAt: at(1), Servers: 1094, Eligible: 0,
				Requirements: json.RawMessage(`{"sites":["FSN1","NBG1"],"memory":{"mib_min":131072,"ecc":true},"drives":[{"count_min":2,"nominal_gb_min":960,"interface":"nvme","medium":"ssd"}],"price":{"currency":"EUR","monthly_max":"80.00"}}`),
				Counts: []client.ReasonCount{
					{Code: "memory_size", Requirement: "memory.mib_min", Servers: 1090, Text: "It has less memory than asked for."},
					{Code: "unknown_attribute", Requirement: "memory.ecc", Servers: 40, Text: "Its record does not say."},
					{Code: "held", Servers: 4, Text: "It is held by another order."},
				},
			},
			{
				ID: "dec_2", CreatedAt: at(2), OrderLine: "1", Unit: 2, Outcome: "reserved", By: key, Text: "Of 1094 servers, 2 met every requirement.",
				SeenAt: at(2), Servers: 1094, Eligible: 2, Requirements: json.RawMessage(`{}`), Choice: client.Choice{Rank: 2, Eligible: 2},
				Walked: []client.WalkedCandidate{
					{ServerID: "srv_1", Name: "fsn1-r3-11", Rank: 1, Outcome: "skipped"}, {ServerID: "srv_2", Name: "fsn1-r3-12", Rank: 2, Outcome: "chosen"},
				},
			},
		},
		Events: []client.Event{
			{Type: "order.refused", At: at(1), By: key, DecisionID: "dec_1"},
			{Type: "reservation.held", At: at(2), By: key, ReservationID: "res_1", ServerID: "srv_2", Data: json.RawMessage(`{"expires_at":"2026-03-13T10:15:02.5+00:00","fence":7}`)},
			{Type: "reservation.renewed", At: at(3), By: key, ServerID: "srv_2", Data: json.RawMessage(`{"expires_at":"2026-03-13T10:15:03Z"}`)},
			{Type: "reservation.taken_over", At: at(4), By: person, ServerID: "srv_2", Data: json.RawMessage(`{"reason":"paid by phone"}`)},
			{Type: "reservation.converted", At: at(5), By: person, ServerID: "srv_2", BindingID: "bnd_1", Data: json.RawMessage(`{"service_id":"svc-1"}`)},
			{Type: "binding.ended", At: at(6), By: person, ServerID: "srv_2", Data: json.RawMessage(`{"service_id":"svc-1","reason":"gone"}`)},
			{Type: "reservation.expired", At: at(7), By: client.Actor{Kind: "sweep"}, ServerID: "srv_3"},
			{Type: "reservation.conversion_refused", At: at(8), By: key, Data: json.RawMessage(`{"service_id":"svc-2","why":"expired"}`)},
			{Type: "something.new", At: at(9), By: key},
			{Type: "reservation.cancelled", At: at(31), By: person, ReservationID: "res_4", ServerID: "srv_2", Data: json.RawMessage(`{"reason_code":"fraud"}`)},
			{Type: "reservation.cancelled", At: at(32), By: key, ReservationID: "res_5", ServerID: "srv_2", Data: json.RawMessage(`{"reason_code":"other"}`)},
		},
		Reservations: []client.Reservation{
			{ID: "res_1", State: "converted", OrderLine: "1", Unit: 2, Server: server, ServiceID: "svc-1"},
			{ID: "res_2", State: "expired", OrderLine: "2", Unit: 1, Server: client.ReservedServer{ID: "srv_3", Site: "HEL1"}, ExpiresAt: at(7)},
			{ID: "res_3", State: "held", OrderLine: "3", Unit: 1, Server: server, ExpiresAt: at(30)},
			{ID: "res_4", State: "cancelled", OrderLine: "4", Unit: 1, Server: server, EndedAt: at(31), EndReason: "fraud", EndText: "stolen card"},
			{ID: "res_5", State: "cancelled", OrderLine: "5", Unit: 1, Server: server, EndedAt: at(32), EndReason: "other"},
		},
		Bindings: []client.Binding{{ID: "bnd_1", ReservationID: "res_1", ServiceID: "svc-1", EndedAt: at(6)}},
	}
	var out bytes.Buffer
	(&process{stdout: &out}).tellOrder(order)
	require.Equal(t, `Order A-1001: 2 decisions, 5 reservations, 1 binding

1. 2026-03-13 10:00:01Z  line 1: no_capacity (all_held)
   Every server that fits is held or sold.
   asked for: site FSN1 or NBG1; at least 128 GiB of memory; memory with ECC; 2 x nvme ssd of at least 960 GB; at most 80.00 EUR a month
   1094 servers looked at, 0 met every requirement
     memory_size         #######################   1090  It has less memory than asked for.
     unknown memory.ecc  #                           40  Its record does not say.
     held                #                            4  It is held by another order.
   by key_1, decision dec_1

2. 2026-03-13 10:00:02Z  line 1 unit 2: reserved
   Of 1094 servers, 2 met every requirement.
   asked for: any server
   1094 servers looked at, 2 met every requirement
   tried rank 1: fsn1-r3-11 (srv_1) was passed over: another order had it at that moment
   tried rank 2: fsn1-r3-12 (srv_2) was chosen
   chosen: rank 2 of 2
   by key_1, decision dec_2

What happened then:
  2026-03-13 10:00:02Z  fsn1-r3-12 in FSN1 was held until 2026-03-13 10:15:02Z (res_1), by key_1
  2026-03-13 10:00:03Z  renewed until 2026-03-13 10:15:03Z, by key_1
  2026-03-13 10:00:04Z  taken over from its holder: paid by phone, by person eve
  2026-03-13 10:00:05Z  fsn1-r3-12 in FSN1 was sold to service svc-1 (bnd_1), by person eve
  2026-03-13 10:00:06Z  the binding to service svc-1 ended: gone, by person eve
  2026-03-13 10:00:07Z  the deadline passed; srv_3 in HEL1 came free, by sweep
  2026-03-13 10:00:08Z  a conversion for service svc-2 was refused (expired): somebody may have paid, by key_1
  2026-03-13 10:00:09Z  something.new, by key_1
  2026-03-13 10:00:31Z  cancelled (fraud: stolen card); fsn1-r3-12 in FSN1 came free, by person eve
  2026-03-13 10:00:32Z  cancelled (other); fsn1-r3-12 in FSN1 came free, by key_1

Now:
  res_1, line 1 unit 2: fsn1-r3-12 in FSN1 was sold to service svc-1 until 2026-03-13 10:00:06Z
  res_2, line 2: srv_3 in HEL1 was held until 2026-03-13 10:00:07Z and is not any more
  res_3, line 3: fsn1-r3-12 in FSN1 is held until 2026-03-13 10:00:30Z
  res_4, line 4: fsn1-r3-12 in FSN1 was given up at 2026-03-13 10:00:31Z (fraud: stolen card)
  res_5, line 5: fsn1-r3-12 in FSN1 was given up at 2026-03-13 10:00:32Z (other)
`, out.String())
}

func TestWhatWasAskedIsSaidInWords(t *testing.T) {
	t.Parallel()
	for frozen, want := range map[string]string{
		`{}`: "any server",
		`{"exclude_sites":["HEL1"],"racks":["R1"],"manufacturers":["Dell"],"models":["R6515"],"servers":["srv_1"]}`:                                             "not site HEL1; rack R1; made by Dell; model R6515; server srv_1",
		`{"cpu":{"vendors":["AMD"],"models":["7502P"],"sockets_min":2,"cores_min":24,"threads_min":48,"benchmark_min":{"name":"passmark 100%","score":20000}}}`: "CPU by AMD; CPU 7502P; at least 2 sockets; at least 24 cores; at least 48 threads; at least 20000 in passmark 100%",
		`{"memory":{"mib_min":1000,"ecc":false,"types":["DDR4","DDR5"]},"raid":"hardware","gpu":{"models":["A100"]},"network":{"uplink_mbps_min":1000}}`:        "at least 1000 MiB of memory; memory without ECC; memory of type DDR4 or DDR5; hardware RAID; at least 1 GPU A100; an uplink of 1000 Mbit/s",
		`{"price":{"currency":"EUR"},"tags_all":["a"],"tags_none":["b"],"attributes":{"tier":"gold"},"drives":[{"nominal_gb_min":8000}]}`:                       "1 x drive of at least 8000 GB; priced in EUR; all tags of a; no tag of b; tier = gold",
		`{"invented_later":true}`: `{"invented_later":true}`,
	} {
		require.Equal(t, want, requirementWords(json.RawMessage(frozen)))
	}
}

func TestServersAreDescribedInOneLine(t *testing.T) {
	t.Parallel()
	ecc := true
	require.Equal(t, "Dell R6515, 2 x AMD EPYC 7502P (64 cores), 128 GiB DDR4 ECC, 2 x 960 GB nvme ssd, 1 x GPU, rack R3, 99.00 EUR a month",
		hardware(client.ReservedServer{
			Manufacturer: "Dell", Model: "R6515", CPU: client.CPU{Vendor: "AMD", Model: "EPYC 7502P", Sockets: 2, Cores: 64},
			Memory: client.Memory{Mib: 131072, Type: "DDR4", Ecc: &ecc}, Drives: []client.Drive{{Count: 2, NominalGb: 960, Interface: "nvme", Medium: "ssd"}},
			Gpus: []client.GPU{{Count: 1}}, Rack: "R3", Price: client.Price{Amount: "99.00", Currency: "EUR"},
		}))
	require.Empty(t, hardware(client.ReservedServer{ID: "srv_1", Site: "FSN1"}))
}

func TestSpansAreShort(t *testing.T) {
	t.Parallel()
	for text, d := range map[string]time.Duration{"15m": 15 * time.Minute, "1h": time.Hour, "1h30m": 90 * time.Minute, "45s": 45 * time.Second, "1m5s": 65 * time.Second, "0s": 0} {
		require.Equal(t, text, span(d))
	}
}
