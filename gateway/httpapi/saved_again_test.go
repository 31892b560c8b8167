package httpapi_test

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/storagetest"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// savedAgain is a gateway whose saved key ops has every kind of stored data.
type savedAgain struct {
	*gatewaytest.Gateway
	t       *testing.T
	push    *gatewaytest.PushService
	station *gatewaytest.Station
	dir     string // of the storage
	phone   gatewaytest.Phone
	invite  string // an invitation that is not used up
}

func (s *savedAgain) save() {
	s.t.Helper()
	if got := s.Post("/add/ops", "text/plain", s.station.NotifyURL("/ops")+"\n"); got.Status != http.StatusOK {
		s.t.Fatalf("saving: %d %s", got.Status, got.Body)
	}
}

func (s *savedAgain) deleteKey() {
	s.t.Helper()
	if got := s.Post("/del/ops", "text/plain", ""); got.Status != http.StatusOK {
		s.t.Fatalf("deleting: %d %s", got.Status, got.Body)
	}
}

func (s *savedAgain) newInvitation() string {
	s.t.Helper()
	k, err := s.Resolved.Key(s.t.Context(), "ops")
	if err != nil {
		s.t.Fatal(err)
	}
	token, _, err := s.Rooms().Devices.Invitations.Make(s.t.Context(), s.Devices.DevicePlace(k), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

// fill gives the key a device, an invitation, a silence, a text in its inbox and an incident.
func (s *savedAgain) fill() {
	s.t.Helper()
	got := s.Ask(http.MethodPost, "/notify/ops/devices",
		map[string]any{"name": "phone", "subscription": s.push.Subscription("/phone"), "invite": s.newInvitation()})
	if err := json.Unmarshal([]byte(got.Body), &s.phone); err != nil || got.Status != http.StatusCreated {
		s.t.Fatalf("%d %s", got.Status, got.Body)
	}
	s.station.Arrives(s.t, "New device") // possibly after the answer
	s.invite = s.newInvitation()
	if got := s.PostForm("/notify/ops", "title=Disk&body=secret&type=failure&incident=db1"); got.Status != http.StatusOK {
		s.t.Fatalf("%d %s", got.Status, got.Body)
	}
	if got := s.Ask(http.MethodPost, "/notify/ops/silences",
		map[string]string{"for": "2h", "title": "Disk"}); got.Status != http.StatusCreated {
		s.t.Fatalf("%d %s", got.Status, got.Body)
	}
	s.station.Take()
}

// check checks whether the present key ops has the data from fill.
func (s *savedAgain) check(name string, has bool) {
	s.t.Helper()
	for path, mark := range map[string]string{
		"/notify/ops/devices": "phone", "/notify/ops/silences": "Disk", "/notify/ops/messages": "secret", "/notify/incidents": "db1",
		"/notify/incidents?key=ops": "db1",
		"/notify/console/silences":  "<strong>Disk…",
	} {
		accept := gatewaytest.TypeJSON
		if strings.Contains(path, "console") {
			accept = "text/html"
		}
		if got := getAccepting(s.Gateway, path, accept); got.Status != http.StatusOK || strings.Contains(got.Body, mark) != has {
			s.t.Errorf("%s: %s: %d %s", name, path, got.Status, got.Body)
		}
	}
	want := http.StatusNotFound // for managers
	if has {
		want = http.StatusOK
	}
	if got := s.Ask(http.MethodGet, "/notify/ops/devices/"+s.phone.ID, nil, "Authorization", "Bearer "+s.phone.Secret); got.Status != want {
		s.t.Errorf("%s: the device: %d %s", name, got.Status, got.Body)
	}
	if got := s.Get("/notify/ops?invite=" + s.invite); strings.Contains(got.Body, `data-invite="`+s.invite) != has {
		s.t.Errorf("%s: the invitation opens the page: %v", name, !has)
	}
	pushes := len(s.push.Got())
	a := s.PostForm("/notify/ops", "title=Disk+2&body=b&type=info").JSON(s.t)
	pushed, arrived := len(s.push.Got()) > pushes, s.station.Take()
	if pushed || (len(arrived) == 0) != has {
		s.t.Errorf("%s: %+v, pushed: %v, arrived: %+v", name, a, pushed, arrived)
	}
}

func newSavedAgain(t *testing.T) *savedAgain {
	s := &savedAgain{t: t, push: gatewaytest.NewPushService(t), station: gatewaytest.NewStation(t), dir: t.TempDir()}
	s.Gateway = gatewaytest.New(t, gatewaytest.Options{
		Global: gatewaytest.PushOptions(),
		Site:   site.Options{Egress: gatewaytest.Loopback(), Managers: gatewaytest.Everybody()},
		Queue:  &outbox.Settings{},
		Saved: &saved.Options{
			Manage: true, Refresh: time.Millisecond,
			KeySettings: site.KeySettings{Inbox: 7 * 24 * time.Hour, Rules: &rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}},
		},
		Storage: storagetest.New(s.dir),
	})
	return s
}

// newStore returns the store of the saved keys, as another gateway has it.
func (s *savedAgain) newStore() *configstore.Store {
	s.t.Helper()
	store, err := configstore.New(configstore.Options{Storage: storagetest.New(s.dir), Index: new(configstore.Index)})
	if err != nil {
		s.t.Fatal(err)
	}
	return store
}

// TestSavedAgain checks that deleting a saved key deletes its data: a later key of the same name
// has none of it. A key that is saved again keeps it.
func TestSavedAgain(t *testing.T) {
	t.Parallel()
	s := newSavedAgain(t)
	s.save()
	s.fill()
	s.check("at first", true)
	s.save()
	s.check("saved again", true)
	s.deleteKey()
	if devices := s.Rooms().Devices; !devices.Ready() || devices.Any() {
		t.Error("the deleted key has devices")
	}
	s.save()
	s.check("deleted and saved again", false)
}

// TestSavedAgainSendsAgain checks that an idempotency key ends with the saved key that it was sent
// to: the message goes to the URLs of the later key of the same name.
func TestSavedAgainSendsAgain(t *testing.T) {
	t.Parallel()
	s := newSavedAgain(t)
	send := func() string {
		t.Helper()
		got := s.PostForm("/notify/ops", "body=b", "Idempotency-Key", "1")
		if got.Status != http.StatusOK {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
		return got.JSON(t).ID
	}
	s.save()
	first := send()
	s.save()
	if again := send(); again != first || s.station.Paths() != "ops" {
		t.Errorf("saved again: the message %s was sent as %s", first, again)
	}
	s.deleteKey()
	s.save()
	if later := send(); later == first || s.station.Paths() != "ops" {
		t.Errorf("deleted and saved again: the message is %s, and was not sent", later)
	}
}

// TestSavedWithoutID checks that a key saved before keys had IDs keeps its data, and that a later
// key of the name has none of it.
func TestSavedWithoutID(t *testing.T) {
	t.Parallel()
	s := newSavedAgain(t)
	s.save()
	removed := 0
	err := filepath.WalkDir(s.dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".json") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		old := regexp.MustCompile(`"id":"[^"]+",`).ReplaceAll(text, nil)
		if len(old) < len(text) {
			removed++
		}
		return os.WriteFile(path, old, 0o600)
	})
	if err != nil || removed != 1 {
		t.Fatalf("%d, %v", removed, err)
	}
	s.fill()
	s.save()
	s.check("without an ID", true)
	s.deleteKey()
	s.save()
	s.check("deleted and saved again", false)
}

// TestDeletedElsewhere checks that a later key gets no data of a key whose data was not deleted
// with it, because another program deleted the key in the storage.
func TestDeletedElsewhere(t *testing.T) {
	t.Parallel()
	s := newSavedAgain(t)
	s.save()
	s.fill()
	other := s.newStore()
	if _, err := other.Delete(t.Context(), "ops"); err != nil {
		t.Fatal(err)
	}
	if err := other.Save(t.Context(), "ops", "text", s.station.NotifyURL("/ops")+"\n", 10); err != nil {
		t.Fatal(err)
	}
	s.check("deleted and saved elsewhere", false)
}
