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

// TestCommandServicesOfGroup checks that a scheme that is the word for a group lists the group,
// with the phone of the person first, and that the scheme with :// is the service.
func TestCommandServicesOfGroup(t *testing.T) {
	out, _, code := command(t, "", "services", "push")
	device, ntfy, techulus := strings.Index(out, "Your phone or browser"),
		strings.Index(out, "\nntfy "), strings.Index(out, "\nTechulus Push ")
	if code != 0 || device != 0 || ntfy < 0 || techulus < ntfy {
		t.Errorf("exit %d: %s", code, out)
	}
	if out, _, _ := command(t, "", "services", "push://"); !strings.HasPrefix(out, "Techulus Push\n") {
		t.Error(out)
	}
	if out, _, _ := command(t, "", "services", "teams"); strings.Contains(out, "Your phone") {
		t.Error(out)
	}
}
