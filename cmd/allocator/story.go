package main

import (
	"encoding/json"
	"fmt"
	"time"

	"allocator/client"
)

// tellEvents writes what happened after the decisions, by whom.
func (p *process) tellEvents(order client.Order) {
	names, texts := map[string]string{}, map[string]string{}
	for _, r := range order.Reservations {
		names[r.Server.ID], texts[r.ID] = serverName(r.Server), r.EndText
	}
	heading := "\nWhat happened then:\n"
	for _, e := range order.Events {
		words := eventWords(e, names[e.ServerID], texts[e.ReservationID])
		if words == "" {
			continue
		}
		p.printf("%s  %s  %s, by %s\n", heading, instant(e.At), words, actor(e.By))
		heading = ""
	}
}

// eventWords says one event in words; empty for one that its decision has told already. endText is what somebody wrote who
// ended the reservation: its event has only the code.
func eventWords(e client.Event, server, endText string) string {
	if server == "" {
		server = e.ServerID
	}
	switch e.Type {
	case "order.refused":
		return ""
	case "reservation.held":
		return fmt.Sprintf("%s was held until %s (%s)", server, eventTime(e, "expires_at"), e.ReservationID)
	case "reservation.renewed":
		return fmt.Sprintf("renewed until %s", eventTime(e, "expires_at"))
	case "reservation.expiring":
		return "about to expire, and nobody has renewed"
	case "reservation.expired":
		return fmt.Sprintf("the deadline passed; %s came free", server)
	case "reservation.cancelled":
		return fmt.Sprintf("cancelled (%s); %s came free", endWords(eventText(e, "reason_code"), endText), server)
	case "reservation.converted":
		return fmt.Sprintf("%s was sold to service %s (%s)", server, eventText(e, "service_id"), e.BindingID)
	case "reservation.conversion_refused":
		return fmt.Sprintf("a conversion for service %s was refused (%s): somebody may have paid", eventText(e, "service_id"), eventText(e, "why"))
	case "reservation.taken_over":
		return fmt.Sprintf("taken over from its holder: %s", eventText(e, "reason"))
	case "binding.ended":
		return fmt.Sprintf("the binding to service %s ended: %s", eventText(e, "service_id"), eventText(e, "reason"))
	default:
		return e.Type
	}
}

// eventText reads a word of the event's own data; one that is missing makes a shorter sentence, not a wrong one.
func eventText(e client.Event, name string) string {
	var data map[string]any
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return ""
	}
	text, _ := data[name].(string)
	return text
}

func eventTime(e client.Event, name string) string {
	text := eventText(e, name)
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return instant(at)
	}
	return text
}

// tellPresent writes how each reservation stands now.
func (p *process) tellPresent(order client.Order) {
	ended := map[string]client.Binding{}
	for _, b := range order.Bindings {
		if !b.Active {
			ended[b.ReservationID] = b
		}
	}
	heading := "\nNow:\n"
	for _, r := range order.Reservations {
		words := presentWords(r)
		if b, over := ended[r.ID]; over {
			words = fmt.Sprintf("was sold to service %s until %s", b.ServiceID, instant(b.EndedAt))
		}
		p.printf("%s  %s, %s: %s %s\n", heading, r.ID, lineWords(r.OrderLine, r.Unit), serverName(r.Server), words)
		heading = ""
	}
}

func presentWords(r client.Reservation) string {
	switch r.State {
	case "held":
		return "is held until " + instant(r.ExpiresAt)
	case "converted":
		return "is sold to service " + r.ServiceID
	case "expired":
		return "was held until " + instant(r.ExpiresAt) + " and is not any more"
	case "cancelled":
		return "was given up at " + instant(r.EndedAt) + " (" + endWords(r.EndReason, r.EndText) + ")"
	default:
		return "is " + string(r.State)
	}
}

// endWords is the code of an end, and what was written about it.
func endWords(code, text string) string {
	if text == "" {
		return code
	}
	return code + ": " + text
}
