package identity

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// organizationsFake stores what it is given.
type organizationsFake struct {
	OrganizationStore

	created []Organization
	patches int
}

func (f *organizationsFake) CreateOrganization(_ context.Context, _ Caller, org Organization) (Organization, error) {
	f.created = append(f.created, org)
	return org, nil
}

func (f *organizationsFake) UpdateOrganization(context.Context, Caller, OrganizationID, OrganizationPatch, int64) (Organization, error) {
	f.patches++
	return Organization{}, nil
}

// faultsOf gives pointer and code of every fault of an InvalidError.
func faultsOf(t *testing.T, err error) map[string]string {
	t.Helper()
	var invalid *InvalidError
	require.ErrorAs(t, err, &invalid)
	got := map[string]string{}
	for _, f := range invalid.Fields {
		require.NotEmpty(t, f.Detail)
		got[f.Pointer] = f.Code
	}
	return got
}

func TestCreateOrganization(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in      NewOrganization
		minHold time.Duration
		want    Organization
		faults  map[string]string
	}{
		"a name alone gets the defaults and an id made of it": {
			in:   NewOrganization{Name: "Demo Hosting GmbH & Co."},
			want: Organization{ID: "demo-hosting-gmbh-co", Name: "Demo Hosting GmbH & Co.", HoldSeconds: 900, HoldLimit: 10},
		},
		"an id that is given wins": {
			in:   NewOrganization{ID: "demo", Name: "Demo Hosting", HoldSeconds: new(3600), HoldLimit: new(3)},
			want: Organization{ID: "demo", Name: "Demo Hosting", HoldSeconds: 3600, HoldLimit: 3},
		},
		"a name of other letters needs an id": {
			in:     NewOrganization{Name: "株式会社"},
			faults: map[string]string{"/id": CodeMalformed},
		},
		"a long name makes an id of at most 63 characters that ends well": {
			in:   NewOrganization{Name: strings.Repeat("a", 62) + " bcd"},
			want: Organization{ID: OrganizationID(strings.Repeat("a", 62)), Name: strings.Repeat("a", 62) + " bcd", HoldSeconds: 900, HoldLimit: 10},
		},
		"a hold below a minute is refused": {
			in:     NewOrganization{Name: "Demo", HoldSeconds: new(59)},
			faults: map[string]string{"/hold_seconds": CodeOutOfRange},
		},
		"a hold below a minute is accepted where the configuration says so": {
			in:      NewOrganization{Name: "Demo", HoldSeconds: new(2)},
			minHold: 2 * time.Second,
			want:    Organization{ID: "demo", Name: "Demo", HoldSeconds: 2, HoldLimit: 10},
		},
		"not even a configuration allows a hold of nothing": {
			in:      NewOrganization{Name: "Demo", HoldSeconds: new(0)},
			minHold: time.Millisecond,
			faults:  map[string]string{"/hold_seconds": CodeOutOfRange},
		},
		"a hold of a day is the longest": {
			in:     NewOrganization{Name: "Demo", HoldSeconds: new(86401)},
			faults: map[string]string{"/hold_seconds": CodeOutOfRange},
		},
		"all faults are told at once": {
			in: NewOrganization{ID: "Demo", Name: " ", HoldSeconds: new(-1), HoldLimit: new(0)},
			faults: map[string]string{
				"/id": CodeMalformed, "/name": CodeRequired, "/hold_seconds": CodeOutOfRange, "/hold_limit": CodeOutOfRange,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &organizationsFake{}
			minHold := max(test.minHold, 0)
			if minHold == 0 {
				minHold = MinHoldTime
			}
			got, err := NewOrganizations(store, minHold).Create(t.Context(), Caller{}, test.in)
			if test.faults != nil {
				require.Equal(t, test.faults, faultsOf(t, err))
				require.Empty(t, store.created)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

func TestUpdateOrganizationRefusesBadSettings(t *testing.T) {
	t.Parallel()
	store := &organizationsFake{}
	service := NewOrganizations(store, MinHoldTime)

	_, err := service.Update(t.Context(), Caller{}, "demo", OrganizationPatch{Name: new(""), HoldSeconds: new(1), HoldLimit: new(0)}, 0)
	require.Equal(t, map[string]string{
		"/name": CodeRequired, "/hold_seconds": CodeOutOfRange, "/hold_limit": CodeOutOfRange,
	}, faultsOf(t, err))
	_, err = service.Update(t.Context(), Caller{}, "no such\x00id", OrganizationPatch{}, 0)
	require.ErrorIs(t, err, ErrOrganizationNotFound)
	require.Zero(t, store.patches)
}

func TestOrganizationPatchTellsWhatChanges(t *testing.T) {
	t.Parallel()
	before := Organization{ID: "demo", Name: "Demo", HoldSeconds: 900, HoldLimit: 10}

	after, changed := OrganizationPatch{Name: new("Demo"), HoldSeconds: new(60), Closing: new(true)}.Apply(before)
	require.Equal(t, Organization{ID: "demo", Name: "Demo", HoldSeconds: 60, HoldLimit: 10, Closing: true}, after)
	require.Equal(t, map[string]string{"hold_seconds": "60", "closing": "true"}, changed)
	require.Equal(t, time.Minute, after.HoldTime())

	same, changed := OrganizationPatch{}.Apply(before)
	require.Equal(t, before, same)
	require.Empty(t, changed)
}

func TestTexts(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		code string
	}{
		"ordinary text": {"Größe 東京", ""},
		"exactly as long as allowed, in characters": {strings.Repeat("ö", 20), ""},
		"one character too long":                    {strings.Repeat("ö", 21), CodeTooLong},
		"nothing":                                   {"", CodeRequired},
		"nothing to see":                            {" \u00a0\t", CodeRequired},
		"NUL":                                       {"a\x00b", CodeControlCharacter},
		"a line break":                              {"a\nb", CodeControlCharacter},
		"an escape of a terminal":                   {"a\x1b[31mb", CodeControlCharacter},
		"a control character of the second block": {"a\u0085b", CodeControlCharacter},
		"a line separator":                        {"a\u2028b", CodeControlCharacter},
		"broken UTF-8":                            {"a\xffb", CodeInvalidUTF8},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fault := checkText("/x", test.text, 20)
			if test.code == "" {
				require.Nil(t, fault)
				return
			}
			require.NotNil(t, fault)
			require.Equal(t, test.code, fault.Code)
			require.Equal(t, "/x", fault.Pointer)
		})
	}
}
