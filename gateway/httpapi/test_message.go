package httpapi

import (
	"net/http"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// SendTest sends a test message to the one target of to under the rules of its key (see
// [gateway.Gateway.SendTest]). The result covers one attempt.
func (h *Sender) SendTest(w http.ResponseWriter, r *http.Request, k *site.Key, to *message.Selection) (*api.Response, error) {
	d, err := h.TestDelivery(k, to)
	if err != nil {
		return nil, err
	}
	stream := streamOf(&d, w, r)
	resp := api.NewResponse(h.App.SendTest(r.Context(), k, d))
	resp.Stream = stream
	return resp, nil
}

// TestDelivery returns a test message to the one target of to.
func (h *Sender) TestDelivery(k *site.Key, to *message.Selection) (dispatch.Delivery, error) {
	m := &notifier.Message{
		Title: "Test from " + h.Resolved.Identity.Name, Body: "If you can read this, a destination of the key " + k.Name + " works.",
		Type: notifier.Info,
	}
	d := dispatch.NewDelivery(h.Resolved, site.SourceTest, h.Site(), m, to).ToKey(k)
	return d, d.To.Check(m)
}
