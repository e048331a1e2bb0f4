package inventory

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// oneServerStore is a Store with one server in it, which keeps what it is asked to write.
type oneServerStore struct {
	Store
	now     Server
	inUse   bool
	written []Server
}

func (s *oneServerStore) CreateServer(_ context.Context, _ Change, server Server) (Server, error) {
	s.written = append(s.written, server)
	return server, nil
}

func (s *oneServerStore) CreateServers(_ context.Context, _ Change, servers []Server) (Created, error) {
	s.written = append(s.written, servers...)
	return Created{Created: len(servers)}, nil
}

func (s *oneServerStore) UpdateServer(
	_ context.Context, _ Change, _ ServerID, edit func(now Server, inUse bool) (Server, []Changed, error),
) (Server, error) {
	next, changed, err := edit(s.now, s.inUse)
	if len(changed) > 0 {
		s.written = append(s.written, next)
	}
	return next, err
}

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		state State
		want  []string
	}{
		"no state, which is never taken to be ready": {"", []string{"/state required"}},
		"a server that begins retired":               {StateRetired, []string{"/state unknown_value"}},
		"held, which is derived":                     {"held", []string{"/state unknown_value"}},
		"bound, which is derived":                    {"bound", []string{"/state unknown_value"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &oneServerStore{}
			server := valid()
			server.State = tt.state
			_, err := NewService(store).Create(t.Context(), Change{}, server)
			require.Equal(t, tt.want, faultsOf(t, err))
			require.Empty(t, store.written)
		})
	}
}

func TestCreateManyIsAllOrNothing(t *testing.T) {
	t.Parallel()
	store := &oneServerStore{}
	servers := []Server{valid(), valid(), valid()}
	servers[1].Site, servers[1].ExternalID = "", "m-2"
	_, err := NewService(store).CreateMany(t.Context(), Change{}, servers)
	require.Equal(t, []string{"/1/site required", "/2/external_id repeated"}, faultsOf(t, err))
	require.Empty(t, store.written)

	servers[1].Site, servers[2].ExternalID = "FSN1", "m-3"
	created, err := NewService(store).CreateMany(t.Context(), Change{}, servers)
	require.NoError(t, err)
	require.Equal(t, Created{Created: 3}, created)
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		patch     Patch
		inUse     bool
		ifVersion int64
		wantErr   error
		invalid   []string
		writes    int
	}{
		"a free server may be rebuilt":                       {patch: Patch{MemoryMiB: To[int64](32768)}, ifVersion: 7, writes: 1},
		"whatever the version is":                            {patch: Patch{MemoryMiB: To[int64](32768)}, writes: 1},
		"the version that was read is no longer the one":     {patch: Patch{Name: To("x")}, ifVersion: 6, wantErr: ErrVersionMismatch},
		"a server in use keeps its memory":                   {patch: Patch{MemoryMiB: To[int64](32768)}, inUse: true, wantErr: ErrInUse},
		"a server in use keeps its place":                    {patch: Patch{Site: To("HEL1"), Name: To("x")}, inUse: true, wantErr: ErrInUse},
		"a server in use may be renamed, tagged and priced":  {patch: Patch{Name: To("x"), Tags: To([]string{"b"}), Price: To[*Price](nil)}, inUse: true, writes: 1},
		"the memory that a server in use has anyway":         {patch: Patch{MemoryMiB: To[int64](65536)}, inUse: true},
		"a patch that changes nothing":                       {patch: Patch{Name: To("web-01")}},
		"what the record would become must be valid as well": {patch: Patch{Rack: To(""), RAID: To[RAID]("x")}, invalid: []string{"/rack required", "/raid unknown_value"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &oneServerStore{now: valid(), inUse: tt.inUse}
			store.now.Version = 7
			_, err := NewService(store).Update(t.Context(), Change{}, "srv_1", tt.patch, tt.ifVersion)
			if tt.invalid != nil {
				require.Equal(t, tt.invalid, faultsOf(t, err))
			} else {
				require.ErrorIs(t, err, tt.wantErr)
			}
			require.Len(t, store.written, tt.writes)
		})
	}
}

func TestVersionErrorTellsTheCurrentVersion(t *testing.T) {
	t.Parallel()
	store := &oneServerStore{now: valid()}
	store.now.Version = 7
	_, err := NewService(store).Update(t.Context(), Change{}, "srv_1", Patch{Name: To("x")}, 3)
	var mismatch *VersionError
	require.ErrorAs(t, err, &mismatch)
	require.Equal(t, int64(7), mismatch.Current)
}
