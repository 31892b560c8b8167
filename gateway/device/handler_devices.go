package device

import (
	"context"

	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// ListDevices returns the JSON of the devices of a key, which is never nil.
func (q *Registry) ListDevices(ctx context.Context, key site.Place) ([]JSON, error) {
	devices, err := q.DevicesOf(ctx, key)
	if err != nil || devices == nil {
		return []JSON{}, err
	}
	states, err := q.DeviceStates(ctx, devices.All)
	if err != nil {
		return nil, err
	}
	out := make([]JSON, len(devices.All))
	for i := range devices.All {
		out[i] = devices.All[i].JSON(states[i])
	}
	return out, nil
}
