package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestCommandServices checks that each listed service can be looked up by any
// of its names.
func TestCommandServices(t *testing.T) {
	out, _, code := command(t, "", "services")
	if lines := strings.Count(out, "\n"); code != 0 || lines != len(notifier.Services())+1 {
		t.Errorf("exit %d, %d lines for %d services", code, lines, len(notifier.Services()))
	}
	var all []notifier.ServiceInfo
	out, _, _ = command(t, "", "services", "--json")
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != len(notifier.Services()) {
		t.Errorf("%d services in JSON, %v", len(all), err)
	}
	for _, s := range notifier.Services() {
		for _, name := range append([]string{s.Name, strings.ToUpper(s.Name), s.Schemes[0] + "://x"}, s.Schemes...) {
			found, err := findService(name)
			if err != nil || found.Name != s.Name {
				t.Errorf("%s is %+v, %v", name, found, err)
			}
		}
	}
	out, _, _ = command(t, "", "services", "--json", "gotify")
	var one notifier.ServiceInfo
	if err := json.Unmarshal([]byte(out), &one); err != nil || one.Name != "Gotify" || len(one.Params) == 0 {
		t.Errorf("%+v, %v", one, err)
	}
}
