// Package typeword knows the words that alerting programs use for the state or the severity of an
// alert.
package typeword

import (
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// typeWords are the words that alerting programs use for the state or the severity of an alert, by
// type. docs/api.md lists them.
//
// Among the sources are the states and severities of Azure Monitor (Fired, Sev0 to Sev4), Google
// Cloud Monitoring (open, closed), Amazon CloudWatch, Datadog (Re-Triggered, No Data), New Relic
// (ACTIVATED), PagerDuty, Opsgenie (P1 to P5), Prometheus, Grafana, Zabbix, Nagios, Icinga and
// Checkmk (FLAPPINGSTART, UNREACH). Where programs differ, the most common meaning counts: sev2 is
// Azure's warning.
var typeWords = wordsByType(map[notifier.Type]string{
	notifier.Info: "info information informational informative notice note " +
		"debug trace normal none started start running queued pending scheduled " +
		"in_progress waiting created opened updated paused skipped neutral low verbose log default not_classified no_severity " +
		"acknowledged acknowledge acknowledgement acknowledgment ack unacknowledge snoozed " +
		"suppressed silenced muted custom flappingstop flappingend flappingdisabled " +
		"downtimestart downtimeend downtimestop downtimecancelled downtimeremoved sev3 sev4 sev5 p4 p5",
	notifier.Success: "success successful succeeded ok okay up resolved resolve " +
		"recovered recovery fixed healthy online passed pass completed complete " +
		"done finished good green available closed close cleared clear inactive merged operational",
	notifier.Warning: "warning warn degraded minor medium moderate average " +
		"yellow unstable partial stale late grace cancelled canceled attention " +
		"maintenance timed_out action_required unknown unkn no_data nodata insufficient_data " +
		"re_warn re_no_data renotify recovering flapping flappingstart " +
		"degraded_performance partial_outage under_maintenance sev2 p3",
	notifier.Failure: "failure fail failed failing fired firing alerting alert alarm " +
		"critical crit error err errored danger down offline unhealthy problem " +
		"fatal emergency emerg panic disaster major high severe red broken crash " +
		"crashed dead missing unavailable unreachable unreach timeout rejected " +
		"trigger triggered re_triggered activated open startup_failure outage major_outage sev0 sev1 p1 p2",
})

func wordsByType(lists map[notifier.Type]string) map[string]notifier.Type {
	out := map[string]notifier.Type{}
	for t, words := range lists {
		for word := range strings.FieldsSeq(words) {
			out[word] = t
		}
	}
	return out
}

// TypeOf returns the type that a common word of alerting means, ignoring
// case and white space around it: failure for "firing" or "critical", success
// for "resolved" or "ok", warning for "degraded". Spaces and hyphens within it
// count as underscores, and may be left out before a digit: "SEV-1" is "sev1". An empty word is [notifier.Info]. If the word is unknown, it
// returns Info and false.
func TypeOf(word string) (t notifier.Type, known bool) {
	word = strings.ToLower(strings.TrimSpace(word))
	if word == "" {
		return notifier.Info, true
	}
	word = underscores.Replace(word)
	if t, known = typeWords[word]; known {
		return t, true
	}
	if last := len(word) - 2; last > 0 && word[last] == '_' {
		if t, known = typeWords[word[:last]+word[last+1:]]; known {
			return t, true
		}
	}
	return notifier.Info, false
}

var underscores = strings.NewReplacer(" ", "_", "-", "_")

// TypeOfPriority returns the type for a priority of ntfy: a number from 1 to 5,
// or its name. Any other text is read by [TypeOf].
func TypeOfPriority(priority string) (t notifier.Type, known bool) {
	switch strings.ToLower(strings.TrimSpace(priority)) {
	case "1", "2", "3", "min", "low", "default":
		return notifier.Info, true
	case "4", "high":
		return notifier.Warning, true
	case "5", "max", "urgent":
		return notifier.Failure, true
	}
	return TypeOf(priority)
}

// IsAcknowledgement reports whether a word of an alerting program says that
// somebody takes care of the incident.
func IsAcknowledgement(word string) bool {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "acknowledged", "acknowledge", "acked", "ack":
		return true
	}
	return false
}
