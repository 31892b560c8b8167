package alerting

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/dispatch"
	"github.com/caddy-notify/caddy-notify/gateway/outbox"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// knownBatch is the number of records that are written at once.
const knownBatch = 100

// storeKnown stores which incidents of the key with a place its destinations know to be
// open.
func (s *Silences) storeKnown(ctx context.Context, conf *outbox.Configuration, place string) {
	home, key, _ := strings.Cut(place, "\x00")
	siteID, _ := strings.CutPrefix(home, "site ")
	opened := map[queue.Hash]time.Time{}
	for name, at := range conf.Shared.Incidents.Opened.With(place + "\x00") {
		id, target, _ := strings.Cut(strings.TrimPrefix(name, place+"\x00"), "\x00")
		if home != "site "+siteID {
			siteID = ""
		}
		t, err := conf.FindQueued(ctx, &queued.State{Site: siteID, Key: key, Hash: target})
		if err != nil {
			continue // it is gone
		}
		// as in records
		opened[s.records.subjectName(place+t.Target.Policy().Key(), incidentSubject(id),
			site.DestinationName(t.Target, t.Limits))] = at.Truncate(time.Microsecond)
	}
	for names := range slices.Chunk(slices.Collect(maps.Keys(opened)), knownBatch) {
		err := s.outbox.Queue.Records.Apply(ctx, &queue.Ruled{Names: names, Decide: func(tx *queue.Tx) error {
			for _, name := range names {
				x := subjectRecords.GetOrNew(tx, name)
				if at := opened[name]; x.Passed == "" && at.After(x.LastTime()) {
					x.Passed, x.Forget = notifier.Failure, at.Add(dispatch.OpenedTime)
					putSubject(tx, name, x)
				}
			}
			return nil
		}})
		if err != nil {
			s.outbox.Log.Warn("what destinations know of incidents cannot be stored for a silence; they may not be told that some of them are over",
				zap.String("key", key), zap.Error(err))
			return
		}
	}
}
