package ruler

import (
	"runtime"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/source"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Alert is an alert as Alertmanager's API shows it.
type Alert struct {
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

// NewAlert returns an alert of a key, which stands for Alertmanager's receiver.
func NewAlert(key string, a *rules.RulerAlert) Alert {
	return Alert{
		Annotations: source.PairsMap(a.Annotations), EndsAt: a.Ends.UTC(), Fingerprint: a.Fingerprint, Receivers: []receiverName{{key}}, StartsAt: a.Starts.UTC(),
		Status:    alertStatus{[]string{}, []string{}, []string{}, "active"},
		UpdatedAt: a.At.UTC(), GeneratorURL: a.Generator, Labels: source.PairsMap(a.Labels),
	}
}

// Status is what Alertmanager's API says of itself.
type Status struct {
	Cluster struct {
		Status string `json:"status"`
	} `json:"cluster"`
	Config struct {
		Original string `json:"original"`
	} `json:"config"`
	Uptime      time.Time         `json:"uptime"` // since when it runs
	VersionInfo map[string]string `json:"versionInfo"`
}

// NewStatus returns the status of a gateway of a version that runs since a time.
func NewStatus(version string, started time.Time) Status {
	s := Status{Uptime: started.UTC(), VersionInfo: map[string]string{
		"branch": "", "buildDate": "", "buildUser": "", "goVersion": runtime.Version(), "revision": "", "version": version,
	}}
	s.Cluster.Status = "disabled"
	return s
}
