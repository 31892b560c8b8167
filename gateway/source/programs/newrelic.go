package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "newrelic",
		Program: "New Relic",
		Doc:     "https://docs.newrelic.com/docs/alerts/get-notified/notification-integrations/#webhook",
		Checked: "read 2026-11-23",
		// The default payload of a workflow or, with names that many templates still use, of the
		// former channels.
		Has: []string{
			"issueUrl|alertConditionNames|alertPolicyNames|incident_url|condition_name", "state|current_state",
			"title|details|policy_name?",
		},
		Templates: source.Templates{
			Title: `{{ $title := .title }}{{ if not $title }}{{ $title = default (index .alertConditionNames 0) .condition_name }}{{ end -}}
{{ $state := lower (default .current_state .state) -}}
{{ if eq $state "closed" }}Closed: {{ else if or (eq $state "acknowledged") (eq .isAcknowledged true "true") }}Acknowledged: {{ end }}{{
	default "New Relic" $title }}`,
			Body: `{{ with .details }}{{ . }}
{{ end }}
{{- with .description }}{{ join "\n" . }}
{{ end }}
{{- with default .condition_name .alertConditionNames }}Condition: {{ join ", " . }}
{{ end }}
{{- with default .policy_name .alertPolicyNames }}Policy: {{ join ", " . }}
{{ end }}
{{- with .impactedEntities }}Entities: {{ join ", " (first 10 .) }}{{ with more 10 . }} and {{ . }} more{{ end }}
{{ end }}
{{- if gt .totalIncidents 1 }}Incidents: {{ .totalIncidents }}
{{ end }}
{{- with default .severity .priority }}Priority: {{ . }}
{{ end }}
{{- with .owner }}{{ if ne . "N/A" }}Owner: {{ . }}
{{ end }}{{ end }}
{{- with default .runbook_url .runbookUrl }}Runbook: {{ join " " . }}
{{ end }}
{{- default .incident_url .issueUrl }}`,
			// HIGH is the priority of a condition's warning.
			Type: `{{ $state := lower (default .current_state .state) -}}
{{ if eq $state "closed" }}success
{{- else if or (eq $state "acknowledged") (eq .isAcknowledged true "true") }}acknowledged
{{- else if eq (lower (default .severity .priority)) "high" "medium" "warning" }}warning
{{- else if eq (lower (default .severity .priority)) "low" "info" }}info{{ else }}failure{{ end }}`,
			Images:   `{{ .violationChartUrl }}`,
			Incident: `{{ default .incident_id (default .issueId .id) }}`,
		},
	})
}
