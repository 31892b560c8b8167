package gateway_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/storagetest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/bolt"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// guestStore is a store as a module of another repository has it. It notes everything that it gets.
type guestStore struct {
	*bolt.Store
	seen *seen
}

// seen is all bytes that a store has got, except for IDs, numbers and times.
type seen struct {
	mu  sync.Mutex
	all strings.Builder
}

func (x *seen) note(values ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, v := range values {
		x.walk(reflect.ValueOf(v))
	}
}

func (x *seen) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			x.walk(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				x.walk(v.Field(i))
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			b := make([]byte, v.Len())
			reflect.Copy(reflect.ValueOf(b), v)
			x.all.Write(append(b, '\n'))
			return
		}
		for i := range v.Len() {
			x.walk(v.Index(i))
		}
	case reflect.String:
		x.all.WriteString(v.String() + "\n")
		if b, err := base64.StdEncoding.DecodeString(v.String()); err == nil {
			x.all.Write(append(b, '\n'))
		}
	}
}

// entries notes entries, with the content of their files.
func (x *seen) entries(entries ...*queue.Entry) error {
	for _, e := range entries {
		if e == nil {
			continue
		}
		x.note(e)
		for _, f := range e.Message.Files {
			b, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size))
			if err != nil {
				return err
			}
			x.note(b)
		}
	}
	return nil
}

// update lets an update note what it decides.
func (x *seen) update(u *queue.Update) {
	if u == nil {
		return
	}
	x.note(u.Names)
	decide := u.Decide
	u.Decide = func(tx *queue.Tx) error {
		err := decide(tx)
		for i := range u.Names {
			if r, ok := tx.Changed(i); ok {
				x.note(r)
			}
		}
		x.note(tx.Owned())
		jobs := tx.Jobs()
		for i := range jobs {
			apply := jobs[i].Apply
			jobs[i].Apply = func(j *queue.Job) {
				apply(j)
				x.note(j)
			}
		}
		return err
	}
}

func (s *guestStore) Hash(text string) queue.Hash {
	s.seen.note(text)
	return s.Store.Hash(text)
}

func (s *guestStore) Accept(ctx context.Context, maxSize int64, entries ...*queue.Entry) error {
	if err := s.seen.entries(entries...); err != nil {
		return err
	}
	for _, e := range entries {
		s.seen.update(e.Update)
	}
	err := s.Store.Accept(ctx, maxSize, entries...)
	s.seen.note(entries) // what the updates have decided
	return err
}

func (s *guestStore) Settle(ctx context.Context, t *queue.Settlement) error {
	s.seen.update(t.Update)
	err := s.Store.Settle(ctx, t)
	s.seen.note(t)
	return errors.Join(err, s.seen.entries(t.Next))
}

func (s *guestStore) Update(ctx context.Context, u *queue.Update) error {
	s.seen.update(u)
	return s.Store.Update(ctx, u)
}

func (s *guestStore) SaveHealth(ctx context.Context, states ...queue.Health) error {
	s.seen.note(states)
	return s.Store.SaveHealth(ctx, states...)
}

func (s *guestStore) Waiting(ctx context.Context, destinations ...queue.Hash) ([]queue.Waiting, error) {
	s.seen.note(destinations)
	return s.Store.Waiting(ctx, destinations...)
}

func (s *guestStore) Wake(ctx context.Context, w queue.Wake) ([]queue.Hash, error) {
	s.seen.note(w)
	return s.Store.Wake(ctx, w)
}

func (s *guestStore) Record(ctx context.Context, name queue.Hash) ([]byte, error) {
	s.seen.note(name)
	return s.Store.Record(ctx, name)
}

func (s *guestStore) Group(ctx context.Context, group, after queue.Hash, n int) ([]queue.NamedRecord, error) {
	s.seen.note(group, after)
	return s.Store.Group(ctx, group, after, n)
}

// guestMark is part of every text that the test stores.
const guestMark = "Marker7"

// guestGateway is a gateway whose queue is in the store of a guest.
type guestGateway struct {
	*live
	ok, down, refuses *gatewaytest.Pager
	storage           certmagic.Storage
}

func (g *guestGateway) start(t *testing.T, dir string, s *seen, secrets ...string) {
	key := func(p *gatewaytest.Pager, name string) site.KeyOptions {
		return gatewaytest.Key(name+guestMark, p.NotifyURL()+guestMark+"-"+name+" tag"+guestMark)
	}
	ruled := func(name string, r rules.Rules) site.KeyOptions {
		k := key(g.ok, name)
		k.Rules = &r
		return k
	}
	beats, kept := key(g.ok, "beats"), key(g.ok, "kept")
	beats.Expects = []site.BeatOptions{{Expect: rules.Expect{Name: "beat" + guestMark, Every: time.Hour, Grace: 10 * time.Minute}}}
	kept.Inbox, kept.Readers = 7*24*time.Hour, []string{"reader-of-" + guestMark}
	duty := gatewaytest.RuledKey("duty"+guestMark, rules.Rules{Escalate: &rules.Escalate{
		After: []time.Duration{30 * time.Minute}, Repeat: 1, Ack: 4 * time.Hour,
	}}, g.ok.NotifyURL()+guestMark+"-chat tag"+guestMark, g.ok.NotifyURL()+guestMark+"-a 1:call"+guestMark,
		g.ok.NotifyURL()+guestMark+"-b 2:call"+guestMark)
	o := gatewaytest.Options{
		Global: gatewaytest.PushOptions(
			key(g.ok, "planned"), key(g.ok, "asks"), key(g.ok, "ruled"), duty, key(g.down, "down"),
			key(g.refuses, "refused"), gatewaytest.Key("phones"+guestMark), beats, kept,
			ruled("rated", rules.Rules{Rate: []rules.Rate{{Count: 1, Per: 30 * time.Minute}}}),
			ruled("digest", rules.Rules{Digest: &rules.Digest{Every: 30 * time.Minute}}),
			ruled("quiet", rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}),
		),
		Site:  site.Options{Managers: gatewaytest.Everybody()},
		Saved: &saved.Options{Manage: true, Trusted: true}, Storage: g.storage,
		Queue: &outbox.Settings{
			Path: dir, Module: "guest", Secret: secrets[0], OldSecrets: secrets[1:],
			Watchdog: &outbox.Watchdog{URL: &url.URL{Scheme: "http", Host: "127.0.0.1:1", Path: "/" + guestMark}, Interval: time.Minute},
			Open: func(_ context.Context, log *zap.Logger) (queue.Store, error) {
				store, err := bolt.Open(bolt.Options{Path: dir, NoSync: true, Logger: log})
				if err != nil {
					return nil, err
				}
				g.store = store
				return &guestStore{store, s}, nil
			},
		},
	}
	g.Gateway, g.t = gatewaytest.New(t, o), t
}

// sends sends a message about something, with fields given as names and values, and returns its ID.
func (g *guestGateway) sends(key, what string, fields ...string) string {
	g.t.Helper()
	form := url.Values{"title": {what + guestMark}, "body": {"text of " + what + guestMark}, "wait": {"2s"}}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	got := g.PostForm("/notify/"+key+guestMark, form.Encode(), "Idempotency-Key", "key of "+what+guestMark)
	if got.Status >= http.StatusBadRequest && key != "refused" {
		g.t.Fatalf("a message to %s: %d %s", key, got.Status, got.Body)
	}
	return got.JSON(g.t).ID
}

// done fails the test unless a request has succeeded.
func (g *guestGateway) done(got gatewaytest.Reply) string {
	g.t.Helper()
	if got.Status >= http.StatusBadRequest {
		g.t.Fatal(got.Status, got.Body)
	}
	return got.Body
}

// has checks that an address shows all texts.
func (g *guestGateway) has(r *http.Request, texts ...string) {
	g.t.Helper()
	got := g.Do(r)
	for _, text := range texts {
		if !strings.Contains(got.Body, text+guestMark) {
			g.t.Errorf("%s does not have %q: %d %.500s", r.URL, text+guestMark, got.Status, got.Body)
		}
	}
}

func (g *guestGateway) hasPage(path string, texts ...string) {
	g.t.Helper()
	g.has(gatewaytest.NewRequest(http.MethodGet, path, "", "Accept", "text/html"), texts...)
}

func (g *guestGateway) hasJSON(path string, texts ...string) {
	g.t.Helper()
	g.has(gatewaytest.NewRequest(http.MethodGet, path, ""), texts...)
}

// told checks that a destination was told something.
func (g *guestGateway) told(p *gatewaytest.Pager, texts ...string) {
	g.t.Helper()
	synctest.Wait()
	all, err := json.Marshal(p.Got())
	if err != nil {
		g.t.Fatal(err)
	}
	for _, text := range texts {
		if !strings.Contains(string(all), text+guestMark) {
			g.t.Errorf("%q has not arrived: %s", text+guestMark, all)
		}
	}
}

// work writes something of every kind, and returns other texts that are not to be seen: tokens and the
// last segments of links.
func (g *guestGateway) work() (secrets []string) {
	link := func(address string) string {
		secrets = append(secrets, address[strings.LastIndexByte(address, '/')+1:])
		return strings.TrimPrefix(address, "https://alerts.example.com")
	}
	g.sends("planned", "planned", "send_at", "30m")
	for _, what := range []string{"open", "answered"} {
		ask := fmt.Sprintf(`{"options": ["yes%s", "no%[1]s"], "timeout": "4h", "default": "no%[1]s"}`, guestMark)
		question := fmt.Sprintf(`{"title": "%s%s", "body": "x", "ask": %s}`, what, guestMark, ask)
		g.done(g.Post("/notify/asks"+guestMark, gatewaytest.TypeJSON, question))
	}
	synctest.Wait()
	answers := map[string]string{}
	for _, m := range g.ok.Got() {
		if m.AnswerURL != "" {
			answers[strings.TrimSuffix(m.Title, guestMark)] = link(m.AnswerURL)
		}
	}
	if len(answers) != 2 {
		g.t.Fatalf("%d questions have arrived", len(answers))
	}
	g.done(g.PostForm(answers["answered"], url.Values{"answer": {"yes" + guestMark}, "by": {"answerer" + guestMark}}.Encode()))
	g.hasPage(answers["open"], "open", "yes", "no")
	g.hasPage(answers["answered"], "answered", "answerer")

	for i := range 3 {
		g.sends("rated", fmt.Sprint("rated", i))
		g.sends("digest", fmt.Sprint("digest", i))
	}
	g.sends("duty", "alert", "type", "failure", "incident", "incident"+guestMark)
	synctest.Wait()
	for _, m := range g.ok.Got() {
		if m.AcknowledgeURL != "" {
			g.done(g.PostForm(link(m.AcknowledgeURL), url.Values{"do": {"acknowledge"}, "by": {"acker" + guestMark}}.Encode()))
		}
	}
	g.done(g.PostForm("/notify/quiet"+guestMark+"/silences", url.Values{
		"for": {"2h"}, "title": {"cellar" + guestMark}, "reason": {"comment" + guestMark}, "who": {"silencer" + guestMark},
	}.Encode()))
	g.sends("quiet", "cellar", "type", "failure", "incident", "cellar"+guestMark)
	for i := range 9 { // more than one record can have
		g.done(g.Post("/notify/ruled"+guestMark+"/prometheus/api/v2/alerts", gatewaytest.TypeJSON, fmt.Sprintf(
			`[{"labels":{"alertname":"rule%s","instance":"i%d%[1]s","x":"%[3]s"},"annotations":{"summary":"summary%[1]s"},`+
				`"startsAt":"2000-01-01T00:00:00Z","endsAt":"2000-01-01T01:30:00Z"}]`, guestMark, i, strings.Repeat("x", 9<<10))))
	}
	g.done(g.PostForm("/notify/beats"+guestMark+"?beat=beat"+guestMark+"&exit=1", "body=output"+guestMark))
	g.sends("kept", "kept")
	g.done(g.Post("/notify/kept"+guestMark+"/opsgenie/v2/alerts", gatewaytest.TypeJSON,
		fmt.Sprintf(`{"alias":"alias%s","message":"opsgenie%[1]s"}`, guestMark)))
	const part = "--b\r\nContent-Disposition: form-data; name=\"%s\"%s\r\n\r\n%s\r\n"
	g.done(g.Do(gatewaytest.NewRequest(http.MethodPost, "/notify/down"+guestMark,
		fmt.Sprintf(part, "title", "", "down"+guestMark)+fmt.Sprintf(part, "body", "", "text of down"+guestMark)+
			fmt.Sprintf(part, "attach", `; filename="file`+guestMark+`.txt"`, "content"+guestMark)+"--b--\r\n",
		"Content-Type", "multipart/form-data; boundary=b", "Idempotency-Key", "key of down"+guestMark)))
	cancelled := uuid.MustParse(g.sends("down", "cancelled")) // as during an attempt
	apply(g.t, g.Rooms().Outbox.Queue, g.Rooms().Outbox.Queue.Hash("cancelled message\x00"+cancelled.String()), queue.Record{
		Data: outbox.EncodeRecord(outbox.KindCancelled, cancelled[:]), Due: time.Now().Add(time.Hour),
	})
	g.sends("refused", "refused")

	invitation := g.invite("phones" + guestMark)
	var device struct{ Secret string }
	got := g.Ask(http.MethodPost, "/notify/phones"+guestMark+"/devices", map[string]any{
		"name": "phone" + guestMark, "subscription": g.phones.Subscription("/" + guestMark), "invite": invitation,
	})
	if err := json.Unmarshal([]byte(g.done(got)), &device); err != nil || device.Secret == "" {
		g.t.Fatal(got.Body)
	}
	secrets = append(secrets, invitation, device.Secret, g.invite("phones"+guestMark))
	g.sends("phones", "push", "type", "failure")
	g.done(g.Post("/add/Saved"+guestMark, "text/plain", g.ok.NotifyURL()+"saved"+guestMark))
	g.sends("Saved", "saved", "send_at", "30m")
	return secrets
}

// TestGuestSeesNoText checks with every kind of record, and with all that a message has, that the store of
// another repository gets no text of it: neither in what it stores nor in the names by which it looks that up.
// Everything is there again after a restart.
func TestGuestSeesNoText(t *testing.T) {
	t.Parallel()
	const first, second = "the first secret of " + guestMark, "the second secret of " + guestMark
	dir, s := t.TempDir(), new(seen)
	g := &guestGateway{
		live: &live{phones: gatewaytest.NewPushService(t), made: new(string)},
		ok:   gatewaytest.NewPager(t, http.StatusOK), down: gatewaytest.NewPager(t, http.StatusServiceUnavailable),
		refuses: gatewaytest.NewPager(t, http.StatusBadRequest), storage: storagetest.New(t.TempDir()),
	}
	var secrets []string
	gatewaytest.InBubble(t, func(t *testing.T) {
		g.start(t, dir, s, first)
		secrets = g.work()
		time.Sleep(5 * time.Minute)
		for _, kind := range outbox.Kinds() {
			if len(g.records(kind)) == 0 {
				t.Errorf("there are no %s", kind)
			}
		}
		g.Stop()
	})
	gatewaytest.InBubble(t, func(t *testing.T) {
		g.down.Answer(http.StatusOK)
		g.start(t, dir, s, second, first)
		time.Sleep(time.Minute)
		g.hasPage("/notify/console/silences", "cellar", "comment", "silencer")
		g.hasJSON("/notify/incidents", "incident", "acker", "cellar")
		g.hasJSON("/notify/ruled"+guestMark+"/prometheus/api/v2/alerts", "rule", "i7", "summary")
		g.hasPage("/notify/console/beats", "beat", "beats")
		g.hasJSON("/notify/phones"+guestMark+"/devices", "phone")
		g.has(gatewaytest.NewRequest(http.MethodGet, "/notify/kept"+guestMark+"/messages", "", "Authorization", "Bearer reader-of-"+guestMark),
			"kept", "text of kept", "opsgenie")
		g.hasJSON("/json/urls/Saved"+guestMark, "saved")
		time.Sleep(30 * time.Minute)
		g.told(g.down, "down", "text of down", "file", "cancelled")
		g.told(g.ok, "planned", "rated2", "digest2", "saved")
		g.told(g.refuses, "refused")
		g.Stop()
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	all := strings.ToLower(s.all.String())
	if len(all) < 100_000 {
		t.Errorf("the guest has got %d bytes", len(all))
	}
	for _, text := range append(secrets, guestMark, "127.0.0.1", "json://", "the service answered") {
		if len(text) < len(guestMark) {
			t.Fatalf("%q is too short to be looked for", text)
		}
		if i := strings.Index(all, strings.ToLower(text)); i >= 0 {
			t.Errorf("the guest has got %q in %q", text, all[max(0, i-100):min(len(all), i+100)])
		}
	}
}
