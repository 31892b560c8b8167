package programs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// rulerTemplates are the templates for alerts that rulers post. The gateway makes the payload from
// its state of a group: Alertmanager's payload, with the alerts that are no longer reported in
// lost.
var rulerTemplates = source.Templates{
	Title: `{{ ` + alertsTitle + ` }}`,
	Body: alertsList + `{{- range first 10 .lost }}No longer reported` + alertLine + `
{{ end -}}
{{- with more 10 .lost }}and {{ . }} more no longer reported
{{ end -}}
{{- $first := index .alerts 0 }}{{ if not $first }}{{ $first = index .lost 0 }}{{ end }}{{ $first.generatorURL }}`,
	Type:   `{{ if and .lost (eq .status "resolved") }}warning{{ else }}` + alertsType + `{{ end }}`,
	Tag:    alertsTag,
	Alerts: alertsOpen,
}

// rulerSource makes the messages about groups of alerts that rulers post.
var rulerSource = sync.OnceValues(func() (*source.Source, error) {
	return source.New(source.Config{Name: site.SourceRuler, Templates: rulerTemplates})
})

// RulerMessage returns the message about a state of a group of alerts that rulers post, and its
// preferred tags.
func RulerMessage(ctx context.Context, g *rules.AlertGroup, state rules.GroupState) (*notifier.Message, []string, error) {
	s, err := rulerSource()
	if err != nil {
		return nil, nil, err
	}
	payload, err := payloadOfRuler(g, state)
	if err != nil {
		return nil, nil, err
	}
	read, err := s.Read(ctx, &source.Request{Body: payload})
	if err != nil {
		return nil, nil, fmt.Errorf("making the message about alerts of a ruler: %w", err)
	}
	t, err := notifier.ParseType(read.Type)
	if err != nil {
		return nil, nil, err
	}
	m := &notifier.Message{
		Title: read.Title, Body: read.Body, Type: t, Format: markup.Text, Foreign: read.Foreign,
		Incident: notifier.Incident{Name: g.Name, Alerts: notifier.AlertWords(read.Alerts)},
	}
	return m, read.Tags, nil
}

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

// ReadRulerAlerts reads a ruler's request to /api/v2/alerts of Alertmanager. now is the time of its
// arrival. The error is an [*source.Error] with the status 400.
func ReadRulerAlerts(body []byte, now time.Time) ([]rules.RulerAlert, error) {
	var posted []postedAlert
	if err := json.Unmarshal(body, &posted); err != nil {
		const text = "the body must be a JSON array of alerts with labels, as rulers post it to Alertmanager"
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // its text names Go types of this program
			return nil, source.Errorf(http.StatusBadRequest, text)
		}
		return nil, source.Errorf(http.StatusBadRequest, text+": %w", err)
	}
	if len(posted) > maxPosted {
		return nil, source.Errorf(http.StatusBadRequest, "the body has %d alerts; at most %d are possible", len(posted), maxPosted)
	}
	out := make([]rules.RulerAlert, len(posted))
	for i := range posted {
		a, err := posted[i].alert(now)
		if err != nil {
			return nil, source.Errorf(http.StatusBadRequest, "alert %d of %d: %w", i+1, len(posted), err)
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

// rulerPayload is the data for the templates of a group: Alertmanager's payload, with the alerts
// that are no longer reported.
type rulerPayload struct {
	Version           string            `json:"version"`
	Status            string            `json:"status"`
	GroupKey          string            `json:"groupKey"`
	GroupLabels       map[string]string `json:"groupLabels"`
	CommonLabels      map[string]string `json:"commonLabels"`
	CommonAnnotations map[string]string `json:"commonAnnotations"`
	Alerts            []groupAlert      `json:"alerts"`
	Lost              []groupAlert      `json:"lost,omitempty"`
}

type groupAlert struct {
	Status string `json:"status"`
	postedAlert
	Fingerprint string `json:"fingerprint"`
}

// payloadOfRuler returns the payload for a state of a group.
func payloadOfRuler(g *rules.AlertGroup, s rules.GroupState) ([]byte, error) {
	p := rulerPayload{Version: "4", Status: "resolved", GroupKey: g.Name, GroupLabels: pairsMap(g.Labels), Alerts: []groupAlert{}}
	if len(s.Firing) > 0 {
		p.Status = "firing"
	}
	add := func(to *[]groupAlert, status string, alerts []rules.RulerAlert) {
		for i := range alerts {
			a := &alerts[i]
			posted := postedAlert{pairsMap(a.Labels), pairsMap(a.Annotations), a.Starts.UTC(), a.Ends.UTC(), a.Generator}
			x := groupAlert{status, posted, a.Fingerprint}
			*to = append(*to, x)
			p.CommonLabels, p.CommonAnnotations = common(p.CommonLabels, x.Labels), common(p.CommonAnnotations, x.Annotations)
		}
	}
	add(&p.Alerts, "firing", s.Firing)
	add(&p.Alerts, "resolved", s.Resolved)
	add(&p.Lost, "lost", s.Lost)
	return json.Marshal(&p)
}

// pairsMap returns the map for names and values, one after the other, as in [rules.RulerAlert].
func pairsMap(pairs []string) map[string]string {
	out := make(map[string]string, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

// common returns the entries that both maps have. all is nil before the first map.
func common(all, m map[string]string) map[string]string {
	if all == nil {
		return maps.Clone(m)
	}
	maps.DeleteFunc(all, func(name, value string) bool { return m[name] != value })
	return all
}

// RulerAlert is an alert as Alertmanager's API shows it.
type RulerAlert struct {
	Annotations  map[string]string `json:"annotations"`
	EndsAt       time.Time         `json:"endsAt"`
	Fingerprint  string            `json:"fingerprint"`
	Receivers    []receiverName    `json:"receivers"`
	StartsAt     time.Time         `json:"startsAt"`
	Status       alertStatus       `json:"status"`
	UpdatedAt    time.Time         `json:"updatedAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
	Labels       map[string]string `json:"labels"`
}

type receiverName struct {
	Name string `json:"name"`
}

type alertStatus struct {
	InhibitedBy []string `json:"inhibitedBy"`
	MutedBy     []string `json:"mutedBy"`
	SilencedBy  []string `json:"silencedBy"`
	State       string   `json:"state"`
}

// NewRulerAlert returns an alert of a key, which stands for Alertmanager's receiver.
func NewRulerAlert(key string, a *rules.RulerAlert) RulerAlert {
	return RulerAlert{
		Annotations: pairsMap(a.Annotations), EndsAt: a.Ends.UTC(), Fingerprint: a.Fingerprint, Receivers: []receiverName{{key}},
		StartsAt:  a.Starts.UTC(),
		Status:    alertStatus{[]string{}, []string{}, []string{}, "active"},
		UpdatedAt: a.At.UTC(), GeneratorURL: a.Generator, Labels: pairsMap(a.Labels),
	}
}

// RulerStatus is the status in Alertmanager's API.
type RulerStatus struct {
	Cluster struct {
		Status string `json:"status"`
	} `json:"cluster"`
	Config struct {
		Original string `json:"original"`
	} `json:"config"`
	Uptime      time.Time         `json:"uptime"` // start of the program
	VersionInfo map[string]string `json:"versionInfo"`
}

// NewRulerStatus returns the status of a gateway with a version and a time of its start.
func NewRulerStatus(version string, started time.Time) RulerStatus {
	s := RulerStatus{Uptime: started.UTC(), VersionInfo: map[string]string{
		"branch": "", "buildDate": "", "buildUser": "", "goVersion": runtime.Version(), "revision": "", "version": version,
	}}
	s.Cluster.Status = "disabled"
	return s
}
