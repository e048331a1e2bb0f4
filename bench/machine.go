package bench

import (
	"context"
	"os"
	"runtime"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Machine is where a run took place, without a name by which it could be found.
type Machine struct {
	OS    string `json:"os"`
	Arch  string `json:"arch"`
	CPU   string `json:"cpu,omitempty"`
	Cores int    `json:"cores"`
	Go    string `json:"go"`
}

func machine() Machine {
	return Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPU: processor(), Cores: runtime.NumCPU(), Go: runtime.Version()}
}

// processor is the processor's name where Linux tells it.
func processor() string {
	content, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(content)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, " \t:"))
		}
	}
	return ""
}

// told are the settings of the database that decide about its speed.
var told = []string{
	"server_version", "synchronous_commit", "fsync", "full_page_writes", "shared_buffers", "max_wal_size", "wal_compression",
	"autovacuum", "shared_preload_libraries",
}

func settings(ctx context.Context, admin *pgxpool.Pool) ([]Setting, error) {
	rows, err := admin.Query(ctx, `SELECT name, current_setting(name) FROM unnest($1::text[]) WITH ORDINALITY AS told (name, n) ORDER BY n`, told)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Setting])
}
