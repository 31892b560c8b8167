package console

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/console/sending"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// senders returns the programs that a text names and that send to a key.
func (h *builder) senders(r *http.Request, key, text string) []view.Sender {
	to := sending.Key{Name: key}
	if k, err := h.Lookup(key).Key(r.Context()); err == nil {
		to.Tokens, to.Login = len(k.Tokens) > 0, h.NeedsLogin(r, k)
	}
	return to.Programs(r, text)
}

// localHost returns the host of a text that is the address of a server in a private network, or "".
func localHost(text string) string {
	found, err := notifier.Recognize(text)
	if err != nil {
		return ""
	}
	for _, x := range found {
		if hosts := x.Values.Texts["host"]; len(hosts) > 0 && notifier.IsLocalHost(hosts[0]) {
			return hosts[0]
		}
	}
	return ""
}

// blocks reports whether URLs of saved keys may not lead to a host of a private network. The addresses
// of a name are not known; any address of such a network stands for them.
func (h *builder) blocks(host string) bool {
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		a = netip.AddrFrom4([4]byte{192, 168, 0, 1})
	}
	return h.Resolved.Limits.Egress.CheckAddr(a) != nil
}
