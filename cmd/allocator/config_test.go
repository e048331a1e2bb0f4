package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// settings runs `allocator config --json` and returns value and origin by the name of the setting.
func settings(t *testing.T, env map[string]string, args ...string) map[string][2]string {
	t.Helper()
	got := inProcess(t, env, append([]string{"config", "--json"}, args...)...)
	require.Equal(t, exitDone, got.code, got.stderr)
	var answer struct {
		Settings []effectiveSetting `json:"settings"`
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &answer))
	found := map[string][2]string{}
	for _, s := range answer.Settings {
		found[s.Name] = [2]string{s.Value, s.From}
	}
	return found
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestASettingHasTheFirstValueThereIs(t *testing.T) {
	t.Parallel()
	lines := write(t, "lines.conf", "# where to serve\nALLOCATOR_LISTEN=\":1\"\nmax-conns = 11\n\nexport LOG_LEVEL='debug'\n")
	object := write(t, "object.json", `{"listen": ":2", "max_conns": 12, "migrate": true}`)
	for sentence, c := range map[string]struct {
		env            map[string]string
		args           []string
		name           string
		value, origins string
	}{
		"the default if nothing else is there":            {nil, nil, "ALLOCATOR_LISTEN", "127.0.0.1:8080", "default"},
		"a file of lines over the default":                {nil, []string{"--config", lines}, "ALLOCATOR_LISTEN", ":1", "file " + lines},
		"names in a file may be spelled like flags":       {nil, []string{"--config", lines}, "ALLOCATOR_MAX_CONNS", "11", "file " + lines},
		"a value may stand in quotes":                     {nil, []string{"--config", lines}, "ALLOCATOR_LOG_LEVEL", "DEBUG", "file " + lines},
		"a JSON file does the same":                       {nil, []string{"--config", object}, "ALLOCATOR_LISTEN", ":2", "file " + object},
		"numbers in JSON are numbers":                     {nil, []string{"--config", object}, "ALLOCATOR_MAX_CONNS", "12", "file " + object},
		"the file may be named by the environment":        {map[string]string{"ALLOCATOR_CONFIG": object}, nil, "ALLOCATOR_LISTEN", ":2", "file " + object},
		"a flag names another file than the environment":  {map[string]string{"ALLOCATOR_CONFIG": object}, []string{"--config", lines}, "ALLOCATOR_LISTEN", ":1", "file " + lines},
		"the environment over the file":                   {map[string]string{"ALLOCATOR_LISTEN": ":3"}, []string{"--config", object}, "ALLOCATOR_LISTEN", ":3", "environment ALLOCATOR_LISTEN"},
		"a flag over the environment":                     {map[string]string{"ALLOCATOR_LISTEN": ":3"}, []string{"--config", object, "--listen", ":4"}, "ALLOCATOR_LISTEN", ":4", "flag --listen"},
		"an empty variable is none":                       {map[string]string{"ALLOCATOR_LISTEN": ""}, []string{"--config", object}, "ALLOCATOR_LISTEN", ":2", "file " + object},
		"the data directory follows the user's own place": {map[string]string{"ALLOCATOR_DATA_DIR": "/srv/a"}, nil, "ALLOCATOR_DATA_DIR", "/srv/a", "environment ALLOCATOR_DATA_DIR"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, [2]string{c.value, c.origins}, settings(t, c.env, c.args...)[c.name])
		})
	}
}

func TestSecretsComeFromFilesAndAreNotShown(t *testing.T) {
	t.Parallel()
	const key = "alk_00_very-secret"
	keyFile := write(t, "key", key+"\n")
	urlFile := write(t, "url", "postgres://me:hunter2@db/allocator?sslpassword=hunter3&sslmode=disable\n")
	config := write(t, "conf", "API_KEY_FILE="+keyFile+"\n")

	got := settings(t, map[string]string{"ALLOCATOR_DATABASE_URL_FILE": urlFile, "ALLOCATOR_HOLD_TOKEN_KEYS": "k1:00"}, "--config", config)
	require.Equal(t, [2]string{"(hidden)", "file " + config + "_FILE " + keyFile}, got["ALLOCATOR_API_KEY"])
	require.Equal(t, [2]string{
		"postgres://me:xxxxx@db/allocator?sslmode=disable&sslpassword=xxxxx", "environment ALLOCATOR_DATABASE_URL_FILE " + urlFile,
	}, got["ALLOCATOR_DATABASE_URL"])
	require.Equal(t, "(hidden)", got["ALLOCATOR_HOLD_TOKEN_KEYS"][0])

	for _, form := range [][]string{{}, {"--json"}} {
		out := inProcess(t, map[string]string{
			"ALLOCATOR_API_KEY": key, "ALLOCATOR_DATABASE_URL": "host=db password=hunter2",
		}, append([]string{"config"}, form...)...)
		require.NotContains(t, out.stdout+out.stderr, key)
		require.NotContains(t, out.stdout+out.stderr, "hunter2")
	}
}

func TestSettingsThatCannotBeMeantAreRefused(t *testing.T) {
	t.Parallel()
	empty := write(t, "empty", "\n")
	for sentence, c := range map[string]struct {
		env  map[string]string
		file string
		says string
	}{
		"a name that nothing reads":         {nil, "LISTEM=:1\n", "sets LISTEM, which is no setting"},
		"a line that is none":               {nil, "LISTEN :1\n", "line 1 is not NAME=VALUE"},
		"broken JSON":                       {nil, `{"listen": `, "begins as a JSON object and is none"},
		"two JSON values":                   {nil, `{} {}`, "something stands behind the JSON object"},
		"a list in JSON":                    {nil, `{"listen": [1]}`, "listen must be a text"},
		"a plain setting has no file":       {nil, "LISTEN_FILE=x\n", "sets LISTEN_FILE, which is no setting"},
		"a secret given twice":              {map[string]string{"ALLOCATOR_API_KEY": "a", "ALLOCATOR_API_KEY_FILE": empty}, "", "are both set"},
		"a secret's file that is missing":   {map[string]string{"ALLOCATOR_API_KEY_FILE": "/nonexistent"}, "", "the file of a secret cannot be read"},
		"a secret's file with nothing":      {map[string]string{"ALLOCATOR_API_KEY_FILE": empty}, "", "holds no secret"},
		"a number that is none":             {map[string]string{"ALLOCATOR_MAX_CONNS": "many"}, "", "--max-conns"},
		"a configuration file that is away": {map[string]string{"ALLOCATOR_CONFIG": "/nonexistent"}, "", "the configuration file cannot be read"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			args := []string{"config"}
			if c.file != "" {
				args = append(args, "--config", write(t, "conf", c.file))
			}
			got := inProcess(t, c.env, args...)
			require.Equal(t, exitUsage, got.code, got.stdout)
			require.Contains(t, got.stderr, c.says)
			require.Empty(t, got.stdout)
		})
	}
}
