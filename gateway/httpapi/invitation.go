package httpapi

import (
	"net/http"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/device"
)

// hideInvitation keeps a request out of the server's access log if its address has an
// invitation that can still be used, for whichever key: whoever reads the log must not be
// able to subscribe a device. One that is used up, or was never made, hides nothing.
func (h *Devices) hideInvitation(r *http.Request) {
	if !h.Has.Push || r.URL.RawQuery == "" {
		return
	}
	token := r.URL.Query().Get(InviteQuery)
	if token == "" {
		return
	}
	q, err := h.App.Open(nil)
	if err == nil {
		var usable bool
		if usable, err = q.Devices.Invitations.Usable(r.Context(), token); err == nil && !usable {
			return
		}
	}
	if err != nil && len(token) != len(device.NewSecret()) { // it may be one
		return
	}
	hideRequest(r)
	h.Log.Info("a request with an invitation is left out of the access log, because the invitation can still be used",
		zap.String("method", r.Method), zap.String("path", r.URL.Path), zap.String("client_ip", ClientIP(r)))
}
