package gateway_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.etcd.io/bbolt"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/caddy-notify/caddy-notify/gateway/ask"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/planned"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/golden"
	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// The folder testdata/stored has the queue of a gateway as each release has left it, with everything
// under way, and what came of it. The files of a release never change: people have such queues.
// STORED=v1.2.3 go test ./gateway -run TestStoredQueues writes those of a new release; they are
// looked at, and committed with it.
const storedFolder = "testdata/stored"

const storedSecret = "a secret of the tests"

// The destinations of stored queues have fixed addresses. The first one takes all, the second one is
// down until the gateway is started again, and the third one refuses.
var storedAddresses = []string{"127.83.17.5:28417", "127.83.17.6:28417", "127.83.17.7:28417"}

// storedTime is how long a gateway ran before it left its queue.
const storedTime = 20 * time.Minute

// storedGateway is a gateway with the destinations of stored queues.
type storedGateway struct {
	secrets []string
	rotates bool // it changes the secret before it goes on

	pagers []*gatewaytest.Pager
	phones *gatewaytest.PushService
	x      *live
	logs   *observer.ObservedLogs
	seen   []int // how many messages of each destination are noted
}

func newStoredGateway(t *testing.T) *storedGateway {
	g := &storedGateway{
		secrets: []string{storedSecret}, seen: make([]int, len(storedAddresses)), phones: gatewaytest.NewPushService(t),
	}
	for i, address := range storedAddresses {
		status := []int{http.StatusOK, http.StatusServiceUnavailable, http.StatusBadRequest}[i]
		g.pagers = append(g.pagers, gatewaytest.NewPagerAt(t, status, address))
	}
	return g
}

// start starts the gateway in a bubble.
func (g *storedGateway) start(t *testing.T, dir string) {
	to := func(name string) string { return g.pagers[0].NotifyURL() + name }
	beats := gatewaytest.Key("beats", to("beats"))
	beats.Expects = []site.BeatOptions{{Expect: rules.Expect{Name: "nightly", Every: time.Hour, Grace: 10 * time.Minute}}}
	kept := gatewaytest.Key("kept", to("kept"))
	kept.Inbox = 7 * 24 * time.Hour
	core, logs := observer.New(zap.InfoLevel)
	g.logs = logs
	o := gatewaytest.Options{
		Log: zap.New(core),
		Global: gatewaytest.PushOptions(
			gatewaytest.Key("planned", to("planned")),
			gatewaytest.Key("approvals", to("asks/a")+" 1:oncall", to("asks/b")+" 2:oncall"),
			gatewaytest.RuledKey("rated", rules.Rules{Rate: []rules.Rate{{Count: 1, Per: time.Hour}}}, to("rated")),
			gatewaytest.RuledKey("digest", rules.Rules{Digest: &rules.Digest{Every: time.Hour}}, to("digest")),
			gatewaytest.RuledKey("lasting", rules.Rules{Hold: &rules.Lasting{For: 45 * time.Minute}}, to("lasting")),
			gatewaytest.RuledKey("duty", rules.Rules{Escalate: &rules.Escalate{
				After: []time.Duration{30 * time.Minute, time.Hour}, Repeat: 2, Ack: 4 * time.Hour,
			}}, to("duty/chat")+" chat", to("duty/a")+" 1:oncall", to("duty/b")+" 2:oncall", to("duty/c")+" 3:oncall"),
			gatewaytest.RuledKey("quiet", rules.Rules{Dedupe: &rules.Dedupe{Window: time.Hour}}, to("quiet")),
			gatewaytest.Key("ruled", to("alerts")), beats, kept,
			gatewaytest.Key("down", g.pagers[1].NotifyURL()+"down"), gatewaytest.Key("denied", g.pagers[2].NotifyURL()+"refused"),
			gatewaytest.Key("phones"),
		),
		Site: site.Options{Managers: gatewaytest.Everybody()},
		Queue: &outbox.Settings{
			Path: dir, Secret: g.secrets[0], OldSecrets: g.secrets[1:], Keep: 24 * time.Hour,
			Watchdog: &outbox.Watchdog{URL: &url.URL{Scheme: "http", Host: "127.0.0.1:1"}, Interval: time.Minute},
		},
	}
	g.x = &live{Gateway: gatewaytest.New(t, o), t: t, phones: g.phones, made: new(string)}
}

// send sends a message with fields, given as names and values.
func (g *storedGateway) send(key string, fields ...string) uuid.UUID {
	g.x.t.Helper()
	form := url.Values{"body": {"x"}, "wait": {"2s"}}
	for pair := range slices.Chunk(fields, 2) {
		form.Set(pair[0], pair[1])
	}
	got := g.x.PostForm("/notify/"+key, form.Encode())
	id, err := uuid.Parse(got.JSON(g.x.t).ID)
	if err != nil {
		g.x.t.Fatalf("a message to %s: %d %s", key, got.Status, got.Body)
	}
	return id
}

// work lets something of every kind be under way.
func (g *storedGateway) work(t *testing.T) {
	g.send("planned", "title", "planned", "send_at", "2h")
	g.send("planned", "title", "planned later", "send_at", "270m")
	for _, q := range [][2]string{
		{"Deploy?", `{"options": ["yes", "no"], "timeout": "4h", "default": "no"}`}, {"Open?", `{"options": ["yes", "no"], "timeout": "3h"}`},
	} {
		got := g.x.Post("/notify/approvals", gatewaytest.TypeJSON, fmt.Sprintf(`{"title": %q, "body": "x", "ask": %s}`, q[0], q[1]))
		if got.Status >= http.StatusBadRequest {
			t.Fatal(got.Status, got.Body)
		}
	}
	for i := range 3 {
		g.send("rated", "title", fmt.Sprint("rated ", i))
		g.send("digest", "title", fmt.Sprint("digest ", i))
	}
	g.send("lasting", "title", "lasting", "type", "failure", "incident", "lasting")
	g.send("duty", "title", "shop", "type", "failure", "incident", "shop")
	g.x.AddSilence("quiet", "for=2h&title=cellar&reason=x&who=Ann")
	g.send("quiet", "title", "cellar", "type", "failure", "incident", "cellar")
	g.send("quiet", "title", "attic", "type", "failure", "incident", "attic")
	for i := range 9 { // more than one record can have
		got := g.x.Post("/notify/ruled/prometheus/api/v2/alerts", gatewaytest.TypeJSON, fmt.Sprintf(
			`[{"labels":{"alertname":"a","instance":"i%d","x":"%s"},"startsAt":"2000-01-01T00:00:00Z","endsAt":"2000-01-01T01:30:00Z"}]`,
			i, strings.Repeat("x", 9<<10)))
		if got.Status != http.StatusOK {
			t.Fatal(got.Status, got.Body)
		}
	}
	g.x.post("beats?beat=nightly", "")
	g.send("kept", "title", "kept")
	g.x.Post("/notify/kept/opsgenie/v2/alerts", gatewaytest.TypeJSON, `{"alias":"a","message":"alert"}`)
	g.send("down", "title", "down")
	cancelled := g.send("down", "title", "cancelled") // as during an attempt
	apply(t, g.x.Rooms().Outbox.Queue, g.x.Rooms().Outbox.Queue.Hash("cancelled message\x00"+cancelled.String()), queue.Record{
		Data: outbox.EncodeRecord(outbox.KindCancelled, cancelled[:]), Due: time.Now().Add(storedTime + time.Minute),
	})
	if got := g.x.post("denied", "title=refused&body=x"); got.Status < http.StatusBadRequest {
		t.Fatal(got.Status, got.Body)
	}
	pushed(g.x, "phones")
	g.x.invite("phones")
	time.Sleep(storedTime)
	synctest.Wait()
}

// view says what is under way.
func (g *storedGateway) view(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	rooms := g.x.Rooms()
	all, err := rooms.Planned.List(t.Context(), func(*planned.Message) bool { return true })
	for i := range all {
		title, titleErr := rooms.Planned.Title(t.Context(), all[i].ID)
		line("planned for %s: %s", all[i].At.UTC().Format(time.DateTime), title)
		err = errors.Join(err, titleErr)
	}
	for _, q := range g.questions(t) {
		line("question until %s: %s, sent to %d", q.Until.UTC().Format(time.DateTime), q.Title, len(q.Targets))
	}
	for _, key := range []string{"lasting", "duty", "quiet"} {
		for _, x := range g.x.ListIncidents(key) {
			line("incident of %s: %s is %s since %s", key, x.Name, x.Stage(), x.Opened.UTC().Format(time.DateTime))
		}
	}
	for _, s := range g.x.ListSilences("quiet") {
		line("silence: %s", s.Title)
	}
	line("alerts: %s", alertsOf(g.x, "ruled"))
	beats, beatsErr := rooms.Beats.AllBeats(t.Context())
	for i := range beats {
		line("beat: %s, last %s", beats[i].Beat.Name, beats[i].Beat.Last.UTC().Format(time.DateTime))
	}
	line("inbox: %s", messagesOf(g.x, "kept"))
	line("devices: %s", devicesOf(g.x, "phones"))
	stats, statsErr := rooms.Outbox.Queue.Stats(t.Context())
	line("queue: %d wait, %d were given up", stats.Queued+stats.Sending, stats.Dead)
	if err := errors.Join(err, beatsErr, statsErr); err != nil {
		t.Error(err)
	}
	return b.String()
}

func (g *storedGateway) questions(t *testing.T) []*ask.Question {
	t.Helper()
	open, err := g.x.Rooms().Questions.OpenOf(t.Context(), []string{g.x.place("approvals").String()}, gatewaytest.SiteID)
	if err != nil {
		t.Error(err)
	}
	return open
}

// arrived says what has arrived since it was called last.
func (g *storedGateway) arrived() (out []string) {
	for i, p := range g.pagers {
		got := p.Got()
		for _, a := range got[g.seen[i]:] {
			out = append(out, fmt.Sprintf("%s %s %s: %s\n", time.Now().UTC().Format("2006-01-02 15:04"), a.Path, a.Type, a.Title))
		}
		g.seen[i] = len(got)
	}
	slices.Sort(out)
	return out
}

// goOn starts the gateway with a stored queue when its time is over, and says what is under way and
// what comes of it in the next hours.
func (g *storedGateway) goOn(t *testing.T, dir string) string {
	time.Sleep(storedTime)
	g.pagers[1].Answer(http.StatusOK)
	if g.rotates {
		g.changeSecret(t, dir)
	}
	g.start(t, dir)
	time.Sleep(10 * time.Second)
	synctest.Wait()
	out := g.view(t)
	for hour := range 5 {
		for range 60 {
			time.Sleep(time.Minute)
			synctest.Wait()
			out += strings.Join(g.arrived(), "")
		}
		if hour != 0 {
			continue
		}
		for _, q := range g.questions(t) {
			if q.Title != "Open?" {
				continue
			}
			if _, first, err := g.x.Rooms().Questions.Answer(t.Context(), &ask.At{Question: q, Through: q.Targets[0]}, "yes", "Ann"); !first {
				t.Error("the answer does not count: ", err)
			}
			out += "Ann answers " + q.Title + "\n"
		}
	}
	return out + g.view(t)
}

// changeSecret lets a gateway run with a new secret until nothing needs the old one, and then removes that.
func (g *storedGateway) changeSecret(t *testing.T, dir string) {
	t.Helper()
	g.secrets = []string{"another secret of the tests", storedSecret}
	g.start(t, dir)
	time.Sleep(time.Second)
	synctest.Wait()
	if n, known := g.x.Process.Values(t)["queue_old_secret_records"]; !known || n != 0 {
		t.Errorf("%v records need the old secret, known: %v", n, known)
	}
	if told := g.logs.FilterMessageSnippet("the old secret can be removed from the configuration"); told.Len() != 1 {
		t.Errorf("the log has %v", g.logs.All())
	}
	g.x.Stop()
	g.secrets = g.secrets[:1]
}

// TestStoredQueues checks that the queue of each release is read: all that was under way in it is
// still there, and happens in time and once. So it does if a later version has added fields to all
// records and the form of the folder says that this program can use it. What is added to a record is
// ignored. And so it does if the secret was changed, and the old one is not set any more.
//
//nolint:tparallel // the subtests use the same addresses, one after the other
func TestStoredQueues(t *testing.T) {
	t.Parallel()
	if name := os.Getenv("STORED"); name != "" {
		t.Run("write", func(t *testing.T) { writeStored(t, name) })
	}
	files, err := filepath.Glob(filepath.Join(storedFolder, "*.tar.gz"))
	if err != nil || len(files) == 0 {
		t.Fatal("there are no stored queues: ", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".tar.gz")
		for what, change := range map[string]func(t *testing.T, dir string){
			"as it is": func(*testing.T, string) {}, "with more fields": addFields, "with another secret": func(*testing.T, string) {},
		} {
			// One after the other, since the addresses are the same.
			t.Run(filepath.Base(name)+" "+what, func(t *testing.T) {
				dir, g := unpack(t, file), newStoredGateway(t)
				g.rotates = what == "with another secret"
				if change(t, dir); golden.Update() && what != "as it is" {
					t.Skip("what a later version adds changes nothing")
				}
				gatewaytest.InBubble(t, func(t *testing.T) { golden.Check(t, name+".txt", g.goOn(t, dir)) })
			})
		}
	}
}

// writeStored writes the files of a release.
func writeStored(t *testing.T, name string) {
	dir, g := t.TempDir(), newStoredGateway(t)
	copied := t.TempDir()
	gatewaytest.InBubble(t, func(t *testing.T) {
		g.start(t, dir)
		g.work(t)
		g.x.BackUp(copied)
		for _, kind := range outbox.Kinds() {
			if len(g.x.records(kind)) == 0 {
				t.Errorf("there are no %s", kind)
			}
		}
	})
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if err := errors.Join(w.AddFS(os.DirFS(copied)), w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(storedFolder, name+".tar.gz"), b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// unpack returns a folder with a stored queue.
func unpack(t *testing.T, file string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		} else if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil || h.Typeflag != tar.TypeReg {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(h.Name)), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// addFields adds fields to all records of a queue, and says that a later version has done so.
func addFields(t *testing.T, dir string) {
	t.Helper()
	sealer, err := seal.New(storedSecret)
	if err != nil {
		t.Fatal(err)
	}
	var fields []byte
	fields = protowire.AppendTag(fields, 2000, protowire.BytesType)
	fields = protowire.AppendString(fields, "of a later version")
	fields = protowire.AppendTag(fields, 2001, protowire.VarintType)
	fields = protowire.AppendVarint(fields, 1<<40)
	fields = protowire.AppendTag(fields, 2002, protowire.Fixed64Type)
	fields = protowire.AppendFixed64(fields, 7)
	db, err := bbolt.Open(filepath.Join(dir, "queue.db"), 0o600, &bbolt.Options{NoFreelistSync: true, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{"messages", "bodies", "jobs", "done", "health", "records"} {
			b := tx.Bucket([]byte(name))
			changed := map[string][]byte{}
			if err := b.ForEach(func(k, v []byte) error {
				if len(k) == 1 { // what keeps the bucket on a page of its own
					return nil
				}
				plain, err := sealer.Open(v, name, k)
				changed[string(k)] = sealer.Seal(append(plain, fields...), name, k)
				return err
			}); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			for k, v := range changed {
				if err := b.Put([]byte(k), v); err != nil {
					return err
				}
			}
		}
		format := binary.BigEndian.AppendUint64(nil, 7<<32|1) // form 7, for programs that know form 1
		return tx.Bucket([]byte("meta")).Put([]byte("format"), binary.BigEndian.AppendUint32(format, crc32.ChecksumIEEE(format)))
	})
	if err != nil {
		t.Fatal(err)
	}
}
