package queue_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// scriptedSecrets is a store that says what still needs an old secret.
type scriptedSecrets struct {
	queue.Store
	script []queue.OldSecrets // the last one is said again and again
	calls  *atomic.Int32
}

func (s scriptedSecrets) SetSecrets(context.Context, string, ...string) error { return nil }

func (s scriptedSecrets) Reseal(context.Context) (queue.OldSecrets, error) {
	return s.script[min(int(s.calls.Add(1)), len(s.script))-1], nil
}

// TestOldSecretsAreLogged checks that the log says at the start how much needs an old secret, and once that
// nothing does any more.
func TestOldSecretsAreLogged(t *testing.T) {
	const keep, remove = "the queue still needs an old secret", "nothing in the queue needs an old secret any more"
	done := queue.OldSecrets{Set: true}
	for name, tt := range map[string]struct {
		script []queue.OldSecrets
		want   []string
	}{
		"no old secret": {[]queue.OldSecrets{{}}, nil},
		"while it runs": {[]queue.OldSecrets{{Set: true, Records: 2, Used: true}, {Set: true, Records: 1}, done}, []string{keep, remove}},
		"at the start":  {[]queue.OldSecrets{done}, []string{remove}},
		"of another gateway": {
			[]queue.OldSecrets{{Set: true, Used: true}, done, {Set: true, Used: true}, done}, []string{keep, remove, remove},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				core, logs := observer.New(zap.InfoLevel)
				q := queue.New(scriptedSecrets{open(t, t.TempDir()), tt.script, new(atomic.Int32)}, queue.Options{Logger: zap.New(core)})
				q.Start()
				defer q.Close(context.WithoutCancel(t.Context()))
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				var got []string
				for _, l := range logs.All() {
					for _, text := range []string{keep, remove} {
						if strings.HasPrefix(l.Message, text) {
							got = append(got, text)
						}
					}
					if n, known := l.ContextMap()["records"]; known && n != int64(tt.script[0].Records) {
						t.Errorf("%v records need an old secret, want %d", n, tt.script[0].Records)
					}
				}
				if !slices.Equal(got, tt.want) {
					t.Errorf("the log has %q, want %q", got, tt.want)
				}
				if old, known := q.OldSecrets(); !known || old != tt.script[len(tt.script)-1] {
					t.Errorf("%+v, known: %v", old, known)
				}
			})
		})
	}
}
