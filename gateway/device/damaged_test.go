package device_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/gateway/device"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// TestDevicesDamaged checks that devices that cannot be read are reported, and that nothing
// overwrites them, because another version of the gateway may be able to read them, until
// the operator removes all.
func TestDevicesDamaged(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewPushService(t)
	o := options(t.TempDir(), keyK)
	o.Global.Push.Who, o.Site.Managers = "open", gatewaytest.Everybody()
	core, logs := observer.New(zap.ErrorLevel)
	o.Log = zap.New(core)
	g := gatewaytest.New(t, o)
	q := g.Rooms()
	phone := s.Subscribe(t, g, "phone")
	place := g.Devices.DevicePlace(g.Resolved.Keys["k"])
	// store replaces the record of the devices, as another version would, and returns the
	// one before.
	store := func(data []byte) (old []byte) {
		name, version := q.Devices.Records.Devices(place), q.Devices.Records.Version()
		err := q.Outbox.Queue.Records.Apply(t.Context(), &queue.Ruled{Names: []queue.Hash{name, version}, Decide: func(tx *queue.Tx) error {
			old = slices.Clone(tx.Get(name))
			now := q.Outbox.Queue.Now()
			tx.Put(name, queue.Record{Data: data, Due: outbox.FarAway(now), Group: q.Devices.Records.Group()})
			tx.Put(version, q.Devices.Records.NewVersion(now))
			return nil
		}})
		if err == nil {
			err = q.Devices.Read(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return old
	}
	good := store(outbox.EncodeRecord(device.KindReceipt, []byte("another kind")))
	for name, bad := range map[string][]byte{
		"of another kind": outbox.EncodeRecord(device.KindReceipt, []byte("another kind")),
		"cut":             good[:len(good)-1],
		"empty":           outbox.EncodeRecord(device.KindDevices, []byte{0xff}),
	} {
		store(bad)
		logs.TakeAll()
		store(bad) // a line for each time that they are read
		if lines := logs.TakeAll(); len(lines) != 1 || !strings.Contains(lines[0].ContextMap()["error"].(string), "restore a back-up") {
			t.Errorf("%s: the log has %v", name, lines)
		}
		at, bearer := "/notify/k/devices/"+phone.ID, []string{"Authorization", "Bearer " + phone.Secret}
		for what, got := range map[string]gatewaytest.Reply{
			"another device":  g.Ask(http.MethodPost, "/notify/k/devices", map[string]any{"name": "two", "subscription": s.Subscription("/two")}),
			"the list":        g.Ask(http.MethodGet, "/notify/k/devices", nil),
			"the device":      g.Ask(http.MethodGet, at, nil, bearer...),
			"another name":    g.Ask(http.MethodPut, at, map[string]any{"name": "x"}, bearer...),
			"revoking":        g.Ask(http.MethodDelete, at, nil, bearer...),
			"another's phone": g.Ask(http.MethodGet, at, nil),
		} {
			if got.Status != http.StatusServiceUnavailable || !strings.Contains(got.Body, "cannot be read; the log") {
				t.Errorf("%s: %s: status %d %s", name, what, got.Status, got.Body)
			}
		}
		if got := g.Get("/notify/console/keys/k"); !strings.Contains(got.Body, "cannot read the devices of this key") {
			t.Errorf("%s: the page of the key: status %d %s", name, got.Status, got.Body)
		}
		if got := g.PostForm("/notify/k", "body=b"); got.Status != http.StatusFailedDependency {
			t.Errorf("%s: a message: status %d %s", name, got.Status, got.Body)
		}
		if !q.Devices.Any() {
			t.Errorf("%s: a new VAPID key would be made, and end the subscriptions", name)
		}
		if old := store(good); !slices.Equal(old, bad) {
			t.Errorf("%s: the record has become %q", name, old)
		}
		if a := g.PostForm("/notify/k", "body=b").JSON(t); len(a.Results) != 1 || a.Results[0].Status != "delivered" {
			t.Errorf("%s: after the back-up was restored: %+v", name, a)
		}
		store(bad)
		if _, err := q.Devices.Of(t.Context(), place); !errors.Is(err, device.ErrDamaged) ||
			!strings.Contains(device.ErrDamaged.Fault.Error(), "revoke <key> --all") {
			t.Errorf("%s: the operator is told %v", name, err) // as TestErrorsForOperators checks
		}
		if removed, err := q.Devices.RemoveAll(t.Context(), place, ""); len(removed) != 0 || err != nil || q.Devices.Any() {
			t.Errorf("%s: %v, %v are removed", name, removed, err)
		}
		s.Subscribe(t, g, "new")
		if removed, err := q.Devices.RemoveAll(t.Context(), place, ""); len(removed) != 1 || removed[0].Name != "new" || err != nil ||
			q.Devices.Any() {
			t.Errorf("%s: after a device was added: %v, %v are removed", name, removed, err)
		}
	}
}
