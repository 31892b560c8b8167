package command

import (
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/version"
)

func TestVersion(t *testing.T) {
	if out, errs, code := command(t, "", "version"); code != 0 || !strings.HasPrefix(out, version.Current+" (Caddy ") {
		t.Errorf("exit %d, %q %s", code, out, errs)
	}
}
