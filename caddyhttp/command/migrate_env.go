package command

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// environment returns the variables of the Apprise API. Without --env-file,
// they are the variables of the process that begin with APPRISE_, and
// SECRET_KEY.
func (f *migrateFlags) environment(stdin io.Reader) (map[string]string, error) {
	if f.envFile != "" {
		env, err := readEnvFile(stdin, f.envFile)
		if err != nil {
			return nil, fmt.Errorf("--env-file: %w", err)
		}
		return env, nil
	}
	env := map[string]string{}
	for _, line := range os.Environ() {
		name, value, _ := strings.Cut(line, "=")
		if strings.HasPrefix(name, "APPRISE_") || name == "SECRET_KEY" {
			env[name] = value
		}
	}
	return env, nil
}

// envLine matches a line that sets a variable.
var envLine = lazyregexp.New(`^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$`)

// maxEnvLine is the size of the longest line of a file with variables, in bytes.
const maxEnvLine = 1 << 20

// readEnvFile reads a file with a variable on each line, in the format of
// docker's flag --env-file and of the output of env. Quotes around a value are
// removed.
func readEnvFile(stdin io.Reader, name string) (map[string]string, error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		stdin = f
	}
	env := map[string]string{}
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
