package safety

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// inOwnNetwork runs the calling test once more, in a network namespace in which
// the machine has public addresses. It returns true in that process. Packets
// cannot leave the namespace.
func inOwnNetwork(t *testing.T) (inside bool) {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("the ip command is not installed")
	}
	if !inNamespace(t, syscall.CLONE_NEWNET) {
		return false
	}
	for _, args := range []string{
		"link set lo up",
		"addr add 11.22.33.44/24 dev lo",
		"addr add 2a00:db9::5/64 dev lo",
	} {
		if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v %s", args, err, out)
		}
	}
	return true
}

// TestEgressOwnNetwork checks that a client's URL reaches neither the public
// addresses of the gateway's machine nor the networks of its interfaces.
func TestEgressOwnNetwork(t *testing.T) {
	t.Parallel()
	if !inOwnNetwork(t) {
		return
	}
	v := newGuarded(t)
	hosts := []string{"11.22.33.44", "11.22.33.1", "[2a00:db9::5]", "[2a00:db9::1]", "[::ffff:11.22.33.44]", "185999660"}
	g := start(t, "", "timeout 5s")
	for _, host := range hosts {
		for _, url := range []string{
			"json://" + host + ":" + v.port + "/", "syslog://" + host + ":" + v.port + "/user",
			"mqtt://" + host + ":" + v.port + "/topic",
		} {
			r := g.post("/notify", message{"urls": url, "body": "x"})
			if r.Status/100 != 4 {
				t.Errorf("%s: status %d, want a refusal", url, r.Status)
			}
			if text := r.text(); strings.Contains(text, "2a00:db9::/64") || strings.Contains(text, "11.22.33.0/24") {
				t.Errorf("%s: the error reveals the gateway's network: %s", url, text)
			}
		}
	}
	if n := v.take(); n != 0 {
		t.Errorf("clients reached the gateway's own addresses %d times", n)
	}
	allowed := start(t, "", "egress {\nallow 11.22.33.44\n}")
	url := fmt.Sprintf("json://11.22.33.44:%s/", v.port)
	if r := allowed.post("/notify", message{"urls": url, "body": "x"}); r.Status != http.StatusOK {
		t.Errorf("with egress allow: status %d %s", r.Status, r.text())
	}
	if n := v.take(); n == 0 {
		t.Error("with egress allow, the address was not reached")
	}
}

// TestEgressProxyHost checks that the Host header of a client's URL has the
// same restrictions as the URL, because a forward proxy uses it as the address
// to fetch.
func TestEgressProxyHost(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.is("200")
	g := start(t, "", "timeout 5s", p.environment()...)
	for _, host := range []string{
		"169.254.169.254", "127.0.0.1", "localhost", "[::1]:80",
		"2130706433", "10.0.0.1:80", "a@127.0.0.1", "127.0.0.1#",
	} {
		r := g.post("/notify", message{
			"urls": "json://hooks.example/?+Host=" + strings.NewReplacer("#", "%23", "@", "%40").Replace(host),
			"body": "x",
		})
		if r.Status/100 != 4 {
			t.Errorf("Host %s: status %d %s, want a refusal", host, r.Status, r.text())
		}
	}
	if r := g.post("/notify", message{"urls": "json://hooks.example/?+Host=other.example", "body": "x"}); r.Status != http.StatusOK {
		t.Errorf("Host other.example: status %d %s", r.Status, r.text())
	}
}
