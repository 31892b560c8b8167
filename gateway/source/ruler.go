package source

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// The bounds of what rulers post.
const (
	maxPosted     = 10_000
	maxLabels     = 100
	maxAnnotation = 2000 // bytes of one value
	unknownEnd    = 5 * time.Minute
)

// postedAlert is an alert in the API of Alertmanager.
type postedAlert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL"`
}

// ReadRulerAlerts reads what a ruler posts to /api/v2/alerts of Alertmanager. now is when it
// came. The error is an [*Error] with the status 400.
func ReadRulerAlerts(body []byte, now time.Time) ([]rules.RulerAlert, error) {
	var posted []postedAlert
	if err := json.Unmarshal(body, &posted); err != nil {
		const text = "the body must be a JSON array of alerts with labels, as rulers post it to Alertmanager"
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // it names types of this program
			return nil, Errorf(http.StatusBadRequest, text)
		}
		return nil, Errorf(http.StatusBadRequest, text+": %w", err)
	}
	if len(posted) > maxPosted {
		return nil, Errorf(http.StatusBadRequest, "the body has %d alerts; at most %d are possible", len(posted), maxPosted)
	}
	out := make([]rules.RulerAlert, len(posted))
	for i := range posted {
		a, err := posted[i].alert(now)
		if err != nil {
			return nil, Errorf(http.StatusBadRequest, "alert %d of %d: %w", i+1, len(posted), err)
		}
		out[i] = a
	}
	return out, nil
}

func (p *postedAlert) alert(now time.Time) (a rules.RulerAlert, err error) {
	maps.DeleteFunc(p.Labels, func(_, value string) bool { return value == "" })
	switch {
	case len(p.Labels) == 0:
		return a, errors.New("it has no label; an alert needs at least one")
	case len(p.Labels) > maxLabels || len(p.Annotations) > maxLabels:
		return a, fmt.Errorf("it has more than %d labels or annotations", maxLabels)
	}
	for name, value := range p.Annotations {
		p.Annotations[name] = markup.TruncateBytes(value, maxAnnotation)
	}
	ends := p.EndsAt
	if ends.IsZero() {
		ends = now.Add(unknownEnd)
	}
	starts := p.StartsAt
	if starts.IsZero() {
		starts = now
	}
	labels := pairsOf(p.Labels)
	return rules.RulerAlert{
		Fingerprint: fingerprintOf(labels), Labels: labels, Annotations: pairsOf(p.Annotations), Generator: p.GeneratorURL,
		Starts: starts, Ends: ends, At: now, Resolved: !ends.After(now),
	}, nil
}

// pairsOf returns the names and values of m, one after the other, in the order of the names.
func pairsOf(m map[string]string) []string {
	out := make([]string, 0, 2*len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, name, strings.ToValidUTF8(m[name], "\uFFFD"))
	}
	return out
}

// fingerprintOf returns the fingerprint that Prometheus and Alertmanager give to labels.
func fingerprintOf(labels []string) string {
	h := fnv.New64a()
	for _, text := range labels {
		_, _ = h.Write([]byte(text)) // never fails
		_, _ = h.Write([]byte{0xff})
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// RulerGroup returns the name of the incident of an alert, and the labels that the alerts of
// the incident share: alertname, and those that groupBy names.
func RulerGroup(a *rules.RulerAlert, groupBy []string) (name string, labels []string) {
	var by []string
	for pair := range slices.Chunk(a.Labels, 2) {
		if pair[0] == "alertname" {
			name = pair[1]
		} else if !slices.Contains(groupBy, pair[0]) {
			continue
		} else {
			by = append(by, fmt.Sprintf("%s=%q", pair[0], pair[1]))
		}
		labels = append(labels, pair...)
	}
	name = cmp.Or(name, "An alert without a name")
	if len(by) > 0 {
		name += "{" + strings.Join(by, ",") + "}"
	}
	return incidentName(name), labels
}

// incidentName returns text as the name of an incident.
func incidentName(text string) string {
	name, _, err := notifier.IncidentName(text)
	if err != nil {
		return notifier.HashIncidentName(text)
	}
	return name
}

// rulerPayload is what the templates of a group get: the payload of Alertmanager, with the
// alerts that are no longer reported.
type rulerPayload struct {
	Version           string            `json:"version"`
	Status            string            `json:"status"`
	GroupKey          string            `json:"groupKey"`
	GroupLabels       map[string]string `json:"groupLabels"`
	CommonLabels      map[string]string `json:"commonLabels"`
	CommonAnnotations map[string]string `json:"commonAnnotations"`
	Alerts            []rulerAlert      `json:"alerts"`
	Lost              []rulerAlert      `json:"lost,omitempty"`
}

type rulerAlert struct {
	Status string `json:"status"`
	postedAlert
	Fingerprint string `json:"fingerprint"`
}

// RulerPayload returns the payload about a state of a group.
func RulerPayload(g *rules.AlertGroup, s rules.GroupState) ([]byte, error) {
	p := rulerPayload{Version: "4", Status: "resolved", GroupKey: g.Name, GroupLabels: PairsMap(g.Labels), Alerts: []rulerAlert{}}
	if len(s.Firing) > 0 {
		p.Status = "firing"
	}
	add := func(to *[]rulerAlert, status string, alerts []rules.RulerAlert) {
		for i := range alerts {
			a := &alerts[i]
			posted := postedAlert{PairsMap(a.Labels), PairsMap(a.Annotations), a.Starts.UTC(), a.Ends.UTC(), a.Generator}
			x := rulerAlert{status, posted, a.Fingerprint}
			*to = append(*to, x)
			p.CommonLabels, p.CommonAnnotations = common(p.CommonLabels, x.Labels), common(p.CommonAnnotations, x.Annotations)
		}
	}
	add(&p.Alerts, "firing", s.Firing)
	add(&p.Alerts, "resolved", s.Resolved)
	add(&p.Lost, "lost", s.Lost)
	return json.Marshal(&p)
}

// PairsMap is the inverse of what [rules.RulerAlert] has: names and values, one after the
// other.
func PairsMap(pairs []string) map[string]string {
	out := make(map[string]string, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

// common returns what both maps have. all is nil before the first one.
func common(all, m map[string]string) map[string]string {
	if all == nil {
		return maps.Clone(m)
	}
	maps.DeleteFunc(all, func(name, value string) bool { return m[name] != value })
	return all
}
