package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "sentry",
		Program: "Sentry",
		Doc:     "https://docs.sentry.io/integrations/integration-platform/webhooks/",
		Checked: "2026-06-29",
		Has:     []string{"data|triggering_rules|culprit", "action|project|project_name"},
		Header:  "Sentry-Hook-Resource",
		Scheme:  source.SchemeSentry,
		Templates: source.Templates{
			Title: `{{ $d := .data }}{{ $error := default $d.error $d.event -}}
{{ $action := replace "_" " " .action -}}
{{ if $d.comment_id }}Comment {{ $action }} by {{ default "somebody" .actor.name }}
{{- else if $d.buildId }}{{ capitalize $action }}: {{ default $d.projectSlug $d.appInfo.name }} {{ $d.appInfo.version }}
{{- else if $d.run_id }}Seer: {{ $action }}
{{- else if $d.installation }}Integration {{ $action }}
{{- else }}{{ default (default (default (default "Sentry" .event.title) $d.description_title) $d.issue.title) $error.title }}{{ end }}`,
			Body: `{{ $d := .data }}{{ $error := default $d.error $d.event -}}
{{ with $d.triggered_rule }}Rule: {{ . }}
{{ end }}
{{- with .triggering_rules }}Rule: {{ join ", " . }}
{{ end }}
{{- with $d.alert.title }}Alert: {{ . }}
{{ end }}
{{- with $d.description_text }}{{ replace "\\n" "\n" . }}
{{ end }}
{{- with $d.comment }}{{ . }}
{{ end }}
{{- with $d.activity.type }}{{ capitalize (replace "_" " " .) }}
{{ end }}
{{- with default $d.root_cause.one_line_description $d.activity.details.summary }}{{ . }}
{{ end }}
{{- with $d.solution.one_line_summary }}{{ . }}
{{ end }}
{{- range first 5 $d.pull_requests }}{{ .pull_request.pr_url }}
{{ end }}
{{- with $d.errorMessage }}{{ . }}
{{ end }}
{{- if and $d.issue (ne .action "triggered") }}Issue {{ $.action }}
{{ end }}
{{- with default (default .culprit $d.issue.culprit) $error.culprit }}{{ . }}
{{ end }}
{{- with $error.environment }}Environment: {{ . }}
{{ end }}
{{- with default (default (default $d.project_slug $d.projectSlug) .project_name) $d.issue.project.slug }}Project: {{ . }}
{{ end }}
{{- with $d.gitInfo.headRef }}Branch: {{ . }}
{{ end }}
{{- default (default (default (default $d.installUrl .url) $d.web_url) $d.issue.web_url) $error.web_url }}`,
			Type: `{{ $d := .data }}{{ $error := default $d.error $d.event -}}
{{ if eq .action "resolved" }}success
{{- else if $d.metric_alert }}{{ type .action }}
{{- else if $d.buildId }}{{ type $d.state }}
{{- else if eq .action "assigned" "archived" "ignored" }}info
{{- else }}{{ type (default (default .level $d.issue.level) $error.level) }}{{ end }}`,
			// Alerts and issues have separate numbers.
			Incident: `{{ $d := .data }}{{ $error := default $d.error $d.event -}}
{{ if $d.metric_alert }}alert {{ $d.metric_alert.id }}
{{- else if default (default $error.issue_id $d.issue_id) $d.issue.id }}issue {{ default (default $error.issue_id $d.issue_id) $d.issue.id
	}}{{ end }}`,
		},
	})
}
