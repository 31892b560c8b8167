package httpapi

import (
	"net/http"
	"sync"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// SendTest sends a test message to the one target of to under the rules of its key (see
// [outbox.Configuration.SendTest]). The result is that of one attempt.
func (h *Sender) SendTest(w http.ResponseWriter, r *http.Request, k *site.Key, to *message.Selection) (*api.Response, error) {
	d, err := h.TestDelivery(k, to)
	if err != nil {
		return nil, err
	}
	stream := streamOf(&d, w, r)
	resp := api.NewResponse(h.App.Engine.SendTest(r.Context(), k, d))
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

// SendTest sends a message to each definition of a key, with the settings of
// its site, and returns the reports as one.
func SendTest(a *outbox.Configuration, r *http.Request, m *notifier.Message, definitions []site.Definition, tag notifier.TagExpr) *notifier.Report {
	reports := make([]*notifier.Report, len(definitions))
	var wg sync.WaitGroup
	for i, d := range definitions {
		targets := d.Key.Select(tag)
		if len(targets) == 0 {
			continue
		}
		c := *m
		wg.Go(func() {
			to := &message.Selection{Targets: targets}
			reports[i] = a.SendTest(r.Context(), d.Key, dispatch.NewDelivery(d.Site, site.SourceTest, a.SiteID(d.Site), &c, to).ToKey(d.Key))
		})
	}
	wg.Wait()
	all := new(notifier.Report)
	for _, r := range reports {
		if r != nil {
			all.Results, all.Records = append(all.Results, r.Results...), append(all.Records, r.Records...)
		}
	}
	return all
}
