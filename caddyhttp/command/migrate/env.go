package migrate

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// environment has the variables of an Apprise API.
type environment map[string]string

// readEnvironment reads the variables of the Apprise API from a file or, without the name
// of one, from this process: those that begin with APPRISE_, and SECRET_KEY.
func readEnvironment(stdin io.Reader, file string) (environment, error) {
	if file != "" {
		env, err := readEnvFile(stdin, file)
		if err != nil {
			return nil, fmt.Errorf("--env-file: %w", err)
		}
		return env, nil
	}
	env := environment{}
	for _, line := range os.Environ() {
		name, value, _ := strings.Cut(line, "=")
		if strings.HasPrefix(name, "APPRISE_") || name == "SECRET_KEY" {
			env[name] = value
		}
	}
	return env, nil
}

// Values of APPRISE_STATEFUL_MODE.
const (
	hashMode   = "hash"
	simpleMode = "simple"
)

// stateless reports whether the Apprise API has no keys. It treats an unknown
// mode as disabled.
func (e environment) stateless() bool {
	return !slices.Contains([]string{"", hashMode, simpleMode}, e.mode())
}

// mode returns APPRISE_STATEFUL_MODE, or "" if it is not set. Apprise API takes the first
// letter of a mode for its name.
func (e environment) mode() string {
	mode := strings.ToLower(strings.TrimSpace(e["APPRISE_STATEFUL_MODE"]))
	for _, name := range []string{hashMode, simpleMode} {
		if mode != "" && strings.HasPrefix(name, mode) {
			return name
		}
	}
	return mode
}

// defaultKey returns the key that the pages of the Apprise API open first.
func (e environment) defaultKey() string { return cmp.Or(e["APPRISE_DEFAULT_CONFIG_ID"], "apprise") }

// isOn reports whether Apprise API treats the value of a variable as yes.
func isOn(value string) bool {
	return value != "" && strings.ContainsAny(value[:1], "aAyY1tTeE+")
}

// envLine matches a line that sets a variable.
var envLine = lazyregexp.New(`^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$`)

// maxEnvLine is the size of the longest line of a file with variables, in bytes.
const maxEnvLine = 1 << 20

// readEnvFile reads a file with a variable on each line, in the format of
// docker's flag --env-file and of the output of env. Quotes around a value are
// removed.
func readEnvFile(stdin io.Reader, name string) (environment, error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		stdin = f
	}
	env := environment{}
	lines := bufio.NewScanner(stdin)
	lines.Buffer(nil, maxEnvLine)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		m := envLine.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("line %d: it sets no variable; write NAME=value", n)
		}
		value := strings.TrimSpace(m[2])
		if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		env[m[1]] = value
	}
	return env, lines.Err()
}
