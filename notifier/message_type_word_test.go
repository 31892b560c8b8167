package notifier

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestTypeOfWord checks states and severities as programs send them.
func TestTypeOfWord(t *testing.T) {
	for program, words := range map[string]map[string]Type{
		"Azure Monitor":           {"Fired": Failure, "Resolved": Success, "Sev0": Failure, "Sev1": Failure, "Sev2": Warning, "Sev3": Info, "Sev4": Info},
		"Google Cloud Monitoring": {"open": Failure, "closed": Success, "Critical": Failure, "Error": Failure, "Warning": Warning, "No severity": Info},
		"CloudWatch":              {"ALARM": Failure, "OK": Success, "INSUFFICIENT_DATA": Warning},
		"Datadog": {
			"Triggered": Failure, "Re-Triggered": Failure, "Warn": Warning, "Re-Warn": Warning, "No Data": Warning, "Re-No Data": Warning,
			"Recovered": Success, "Renotify": Warning, "Alert": Failure, "error": Failure, "success": Success, "P1": Failure, "P5": Info, "low": Info,
		},
		"New Relic": {"ACTIVATED": Failure, "CREATED": Info, "CLOSED": Success, "CRITICAL": Failure, "HIGH": Failure, "MEDIUM": Warning, "LOW": Info},
		"PagerDuty": {"trigger": Failure, "acknowledge": Info, "resolve": Success, "critical": Failure, "triggered": Failure, "acknowledged": Info, "SEV-1": Failure, "SEV-2": Warning},
		"Opsgenie":  {"P1": Failure, "P2": Failure, "P3": Warning, "P4": Info, "P5": Info, "open": Failure, "Close": Success, "Acknowledge": Info, "snoozed": Info},
		"Nagios": {
			"PROBLEM": Failure, "RECOVERY": Success, "ACKNOWLEDGEMENT": Info, "FLAPPINGSTART": Warning, "FLAPPINGSTOP": Info, "FLAPPINGDISABLED": Info,
			"DOWNTIMESTART": Info, "DOWNTIMEEND": Info, "DOWNTIMECANCELLED": Info, "OK": Success, "WARNING": Warning, "UNKNOWN": Warning, "CRITICAL": Failure,
			"UP": Success, "DOWN": Failure, "UNREACHABLE": Failure,
		},
		"Icinga":   {"FLAPPINGEND": Info, "DOWNTIMEREMOVED": Info, "CUSTOM": Info},
		"Checkmk":  {"CRIT": Failure, "WARN": Warning, "UNREACH": Failure, "PENDING": Info},
		"Gatus":    {"TRIGGERED": Failure, "RESOLVED": Success},
		"Grafana":  {"Alerting": Failure, "NoData": Warning, "no_data": Warning, "Normal": Info, "Pending": Info, "Recovering": Warning},
		"Zabbix":   {"Disaster": Failure, "High": Failure, "Average": Warning, "Not classified": Info},
		"a person": {"  firing ": Failure, "sev 1": Failure, "in progress": Info, "": Info},
	} {
		for word, want := range words {
			if got, known := TypeOfWord(word); got != want || !known {
				t.Errorf("%s: %q is %s, %v", program, word, got, known)
			}
		}
	}
	for _, word := range []string{"nonsense", "sev9", "sev__1", "_1", "1"} {
		if got, known := TypeOfWord(word); known || got != Info {
			t.Errorf("%q is %s", word, got)
		}
	}
}

// TestTypeWords checks that each word has one type, and that the documentation lists it.
func TestTypeWords(t *testing.T) {
	page, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[Type][]string{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			continue
		}
		if typ, err := ParseType(strings.TrimSpace(cells[1])); err == nil && strings.TrimSpace(cells[1]) != "" {
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
