package alerting

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// rank is the place of an incident among all: by its stage, by when the next step tells somebody,
// those that silences match last, failures before warnings, and the newest first. Those that are
// resolved are ranked by when they were.
type rank struct {
	Stage  notifier.IncidentState
	next   int64 // in microseconds; math.MaxInt64 if nobody is told next
	silent bool  // a silence keeps it from all destinations
	kind   int   // index of its type in rules.Types
	newest int64 // in microseconds
	name   queue.Hash
}

// newRank returns the rank of an incident of which silences keep something back.
func newRank(x *StoredIncident, s *Silenced) rank {
	next := int64(math.MaxInt64)
	if _, at := s.NextStep(x.Incident); !at.IsZero() {
		next = at.UnixMicro()
	} else if a := x.Incident.Acknowledged; x.Incident.IsOpen() && !a.Until.IsZero() {
		next = a.Until.UnixMicro() // it is told again
	}
	out := rank{Stage: x.Incident.Stage(), next: next, silent: s.All(), name: x.name}
	if out.Stage == notifier.Resolved {
		out.newest = x.Incident.Resolved.UnixMicro()
	} else {
		out.kind, out.newest = slices.Index(rules.Types, x.Incident.Type), x.Incident.Opened.UnixMicro()
	}
	return out
}

// compare is negative if a is worse than b.
func (a rank) compare(b rank) int {
	silent := 0
	if a.silent != b.silent {
		silent = -1
		if a.silent {
			silent = 1
		}
	}
	return cmp.Or(
		cmp.Compare(slices.Index(rules.Stages, a.Stage), slices.Index(rules.Stages, b.Stage)), cmp.Compare(a.next, b.next), silent,
		cmp.Compare(b.kind, a.kind), cmp.Compare(b.newest, a.newest), slices.Compare(a.name[:], b.name[:]),
	)
}

// ranked is an incident with its rank.
type ranked struct {
	StoredIncident
	rank rank
}

// ListedIncidents are an incident of a list, or several equal ones of a key.
type ListedIncidents struct {
	Worst  StoredIncident
	Equal  []StoredIncident // with the worst, the worst first, at most MaxEqual; none for an incident alone
	Count  int              // of all equal ones; 1 for an incident alone
	Newest time.Time        // when the newest of them was opened
	Prefix string           // beginning that their titles share

	rank rank // of the worst
}

// MaxEqual is how many equal incidents [ListedIncidents] have. More are only counted.
const MaxEqual = 1000

// minEqual is how many equal incidents are one row.
const minEqual = 3

// equality identifies equal incidents: those that are not resolved, of one key and one type, which
// have come to the same step.
type equality struct {
	place       string
	stage       notifier.IncidentState
	kind        notifier.Type
	silent      bool
	round, step int
}

// equals are equal incidents.
type equals struct {
	some   []ranked // at most MaxEqual
	count  int
	newest time.Time
	prefix string
}

// worst finds the worst rows of a list after a position.
type worst struct {
	after rank
	most  int
	fold  bool // equal ones are one row

	rows  []ListedIncidents
	equal map[equality]*equals
}

// add adds an incident.
func (w *worst) add(x ranked) {
	if !w.fold || x.rank.Stage == notifier.Resolved {
		w.addRow(newRow(x))
		return
	}
	e := x.Incident.Escalation
	id := equality{PlaceOfIncident(x.Incident), x.rank.Stage, x.Incident.Type, x.rank.silent, e.Round, e.Step}
	known := w.equal[id]
	if known == nil {
		known = &equals{prefix: x.Incident.Title}
		w.equal[id] = known
	}
	known.count++
	known.prefix = commonPrefix(known.prefix, x.Incident.Title)
	if x.Incident.Opened.After(known.newest) {
		known.newest = x.Incident.Opened
	}
	if len(known.some) < MaxEqual {
		known.some = append(known.some, x)
	}
}

// newRow returns the row of an incident alone.
func newRow(x ranked) ListedIncidents {
	return ListedIncidents{Worst: x.StoredIncident, Count: 1, Newest: x.Incident.Opened, Prefix: x.Incident.Title, rank: x.rank}
}

// commonPrefix returns what two texts begin with, without a part of a character.
func commonPrefix(a, b string) string {
	n := 0
	for _, r := range a {
		if !strings.HasPrefix(b[n:], string(r)) {
			break
		}
		n += len(string(r))
	}
	return a[:n]
}

// addRow adds a row if it comes after the position. Of all rows it keeps the worst ones.
func (w *worst) addRow(row ListedIncidents) {
	if w.after != (rank{}) && row.rank.compare(w.after) <= 0 {
		return
	}
	if w.rows = append(w.rows, row); len(w.rows) > 2*w.most {
		w.sort()
	}
}

// sort leaves the worst rows, the worst first.
func (w *worst) sort() {
	slices.SortFunc(w.rows, func(a, b ListedIncidents) int { return a.rank.compare(b.rank) })
	w.rows = w.rows[:min(len(w.rows), w.most)]
}

// sorted returns the worst rows, the worst first.
func (w *worst) sorted() []ListedIncidents {
	for _, all := range w.equal {
		slices.SortFunc(all.some, func(a, b ranked) int { return a.rank.compare(b.rank) })
		if all.count < minEqual {
			for _, x := range all.some {
				w.addRow(newRow(x))
			}
			continue
		}
		row := newRow(all.some[0])
		row.Count, row.Newest, row.Prefix = all.count, all.newest, all.prefix
		for _, x := range all.some {
			row.Equal = append(row.Equal, x.StoredIncident)
		}
		w.addRow(row)
	}
	w.sort()
	return w.rows
}

// List returns the incidents of the keys with these places, the worst first, and the cursor of the
// next page, or the zero value if no more follow.
func (i *Incidents) List(ctx context.Context, places []string, by *IncidentQuery) (out []StoredIncident, next IncidentCursor, err error) {
	rows, next, err := i.Rows(ctx, places, by)
	for _, row := range rows {
		out = append(out, row.Worst)
	}
	return out, next, err
}

// listPage is how many records are read at once.
const listPage = 1000

// Rows is [Incidents.List], in which equal incidents can be one row. It reads all incidents in a stage
// before it chooses the worst, because each key has its own group of records. A stage is read only if
// the stages before it do not fill the page.
func (i *Incidents) Rows(ctx context.Context, places []string, by *IncidentQuery) (out []ListedIncidents, next IncidentCursor, err error) {
	sizes, err := i.outbox.Queue.Records.GroupSizes(ctx)
	if err != nil {
		return nil, next, err
	}
	places = slices.Compact(slices.Sorted(slices.Values(places)))
	silences := i.silences.reader()
	begun := by.After == IncidentCursor{}
	for _, stage := range rules.Stages {
		begun = begun || stage == by.After.Stage
		if !begun || by.Stage != "" && stage != by.Stage || len(out) > by.Limit {
			continue
		}
		w := worst{after: rank(by.After), most: by.Limit + 1 - len(out), fold: by.Fold, equal: map[equality]*equals{}}
		for _, place := range places {
			var last queue.Hash
			for more := sizes[i.records.incidentGroup(place, stage)] > 0; more; {
				var page []StoredIncident
				if page, last, more, err = i.page(ctx, place, stage, last, listPage); err != nil {
					return nil, next, err
				}
				for _, x := range page {
					if !by.on(x.Incident.Opened) {
						continue
					}
					silenced, err := silences.of(ctx, x.Incident)
					if err != nil {
						return nil, next, err
					}
					w.add(ranked{x, newRank(&x, &silenced)})
				}
			}
		}
		out = append(out, w.sorted()...)
	}
	if len(out) > by.Limit {
		out = out[:by.Limit]
		next = IncidentCursor(out[by.Limit-1].rank)
	}
	return out, next, nil
}
