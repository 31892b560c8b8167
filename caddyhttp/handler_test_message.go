package caddyhttp

import (
	"net/http"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// sendTest sends a test message to the one target of to under the rules of its key. It
// does not use the queue, so that the result is that of one attempt.
func (h *httpAPI) sendTest(w http.ResponseWriter, r *http.Request, k *site.Key, to *api.Selection) (*api.Response, error) {
	d, err := h.testDelivery(k, to)
	if err != nil {
		return nil, err
	}
	stream := deliveryStream(&d, w, r)
	resp := api.NewResponse(h.shared.Send(r.Context(), d))
	resp.Stream = stream
	return resp, nil
}

// testDelivery returns a test message to the one target of to.
func (h *httpAPI) testDelivery(k *site.Key, to *api.Selection) (dispatch.Delivery, error) {
	m := &notifier.Message{
		Title: "Test from " + h.resolved.Identity.Name, Body: "If you can read this, a destination of the key " + k.Name + " works.",
		Type: notifier.Info,
	}
	d := dispatch.NewDelivery(h.resolved, site.SourceTest, h.site(), m, to).ToKey(k)
	return d, d.To.Check(m)
}
