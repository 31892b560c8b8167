package typeword

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestTypeOf checks states and severities as programs send them.
func TestTypeOf(t *testing.T) {
	for program, words := range map[string]map[string]notifier.Type{
		"Azure Monitor": {
			"Fired": notifier.Failure, "Resolved": notifier.Success, "Sev0": notifier.Failure,
			"Sev1": notifier.Failure, "Sev2": notifier.Warning, "Sev3": notifier.Info, "Sev4": notifier.Info,
		},
		"Google Cloud Monitoring": {
			"open": notifier.Failure, "closed": notifier.Success, "Critical": notifier.Failure,
			"Error": notifier.Failure, "Warning": notifier.Warning, "No severity": notifier.Info,
		},
		"CloudWatch": {"ALARM": notifier.Failure, "OK": notifier.Success, "INSUFFICIENT_DATA": notifier.Warning},
		"Datadog": {
			"Triggered": notifier.Failure, "Re-Triggered": notifier.Failure, "Warn": notifier.Warning,
			"Re-Warn": notifier.Warning, "No Data": notifier.Warning, "Re-No Data": notifier.Warning,
			"Recovered": notifier.Success, "Renotify": notifier.Warning, "Alert": notifier.Failure,
			"error": notifier.Failure, "success": notifier.Success, "P1": notifier.Failure,
			"P5": notifier.Info, "low": notifier.Info,
		},
		"New Relic": {
			"ACTIVATED": notifier.Failure, "CREATED": notifier.Info, "CLOSED": notifier.Success,
			"CRITICAL": notifier.Failure, "HIGH": notifier.Failure, "MEDIUM": notifier.Warning, "LOW": notifier.Info,
		},
		"PagerDuty": {
			"trigger": notifier.Failure, "acknowledge": notifier.Info, "resolve": notifier.Success,
			"critical": notifier.Failure, "triggered": notifier.Failure, "acknowledged": notifier.Info,
			"SEV-1": notifier.Failure, "SEV-2": notifier.Warning,
		},
		"Opsgenie": {
			"P1": notifier.Failure, "P2": notifier.Failure, "P3": notifier.Warning, "P4": notifier.Info,
			"P5": notifier.Info, "open": notifier.Failure, "Close": notifier.Success,
			"Acknowledge": notifier.Info, "snoozed": notifier.Info,
		},
		"Nagios": {
			"PROBLEM": notifier.Failure, "RECOVERY": notifier.Success, "ACKNOWLEDGEMENT": notifier.Info,
			"FLAPPINGSTART": notifier.Warning, "FLAPPINGSTOP": notifier.Info, "FLAPPINGDISABLED": notifier.Info,
			"DOWNTIMESTART": notifier.Info, "DOWNTIMEEND": notifier.Info,
			"DOWNTIMECANCELLED": notifier.Info, "OK": notifier.Success, "WARNING": notifier.Warning,
			"UNKNOWN": notifier.Warning, "CRITICAL": notifier.Failure,
			"UP": notifier.Success, "DOWN": notifier.Failure, "UNREACHABLE": notifier.Failure,
		},
		"Icinga":  {"FLAPPINGEND": notifier.Info, "DOWNTIMEREMOVED": notifier.Info, "CUSTOM": notifier.Info},
		"Checkmk": {"CRIT": notifier.Failure, "WARN": notifier.Warning, "UNREACH": notifier.Failure, "PENDING": notifier.Info},
		"Gatus":   {"TRIGGERED": notifier.Failure, "RESOLVED": notifier.Success},
		"Grafana": {
			"Alerting": notifier.Failure, "NoData": notifier.Warning, "no_data": notifier.Warning,
			"Normal": notifier.Info, "Pending": notifier.Info, "Recovering": notifier.Warning,
		},
		"Zabbix":   {"Disaster": notifier.Failure, "High": notifier.Failure, "Average": notifier.Warning, "Not classified": notifier.Info},
		"a person": {"  firing ": notifier.Failure, "sev 1": notifier.Failure, "in progress": notifier.Info, "": notifier.Info},
	} {
		for word, want := range words {
			if got, known := TypeOf(word); got != want || !known {
				t.Errorf("%s: %q is %s, %v", program, word, got, known)
			}
		}
	}
	for _, word := range []string{"nonsense", "sev9", "sev__1", "_1", "1"} {
		if got, known := TypeOf(word); known || got != notifier.Info {
			t.Errorf("%q is %s", word, got)
		}
	}
}

// TestTypeWords checks that each word has one type, and that the documentation lists it.
func TestTypeWords(t *testing.T) {
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[notifier.Type][]string{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			continue
		}
		if typ, err := notifier.ParseType(strings.TrimSpace(cells[1])); err == nil && strings.TrimSpace(cells[1]) != "" {
			for word := range strings.SplitSeq(cells[2], ",") {
				word = strings.Trim(word, " `")
				if slices.Contains(listed[typ], word) {
					t.Errorf("docs/api.md lists %s twice", word)
				}
				listed[typ] = append(listed[typ], word)
			}
		}
	}
	for word, typ := range typeWords {
		if !slices.Contains(listed[typ], word) {
			t.Errorf("the row %s in docs/api.md lacks `%s`", typ, word)
		}
	}
	for typ, words := range listed {
		for _, word := range words {
			if typeWords[word] != typ {
				t.Errorf("docs/api.md lists %s as %s, which it is not", word, typ)
			}
		}
	}
}
