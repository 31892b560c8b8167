package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "github",
		Program: "GitHub",
		Doc:     "https://docs.github.com/en/webhooks/webhook-events-and-payloads",
		Checked: "2026-06-22",
		Has: []string{
			"repository.full_name|sender.login|organization.login|zen|security_advisory|installation.id|enterprise.slug",
			"repository.node_id|sender.node_id|compare|head_commit|pusher.name|zen|starred_at|alert|build?",
		},
		Header: "X-GitHub-Event",
		Reads:  []string{"gitea"},
		Field:  "payload",
		Scheme: source.SchemeGitHub,
		Templates: source.Templates{
			Title: `{{ $event := header "X-GitHub-Event" -}}
{{ $action := replace "_" " " .action -}}
{{ $who := default "Somebody" (default .pusher.name .sender.login) -}}
{{ if .workflow_run }}{{ default "Workflow" .workflow_run.name }} {{ replace "_" " " (default (default .action .workflow_run.status)
	.workflow_run.conclusion) }}
{{- else if .workflow_job }}{{ default "Job" .workflow_job.name }} {{ replace "_" " " (default (default .action .workflow_job.status)
	.workflow_job.conclusion) }}
{{- else if .check_run }}{{ default "Check" .check_run.name }} {{ replace "_" " " (default (default .action .check_run.status)
	.check_run.conclusion) }}
{{- else if .check_suite }}Checks {{ replace "_" " " (default (default .action .check_suite.status) .check_suite.conclusion) }}
{{- else if .deployment_status }}Deployment to {{ .deployment_status.environment }} {{ replace "_" " " .deployment_status.state }}
{{- else if or .pull_request .issue }}{{ if or .pull_request .issue.pull_request }}Pull request{{ else }}Issue{{ end }} {{ default
	.issue.number .pull_request.number }} ` + commentOrAction + `
{{- else if .discussion }}Discussion {{ .discussion.number }} ` + commentOrAction + `
{{- else if .release }}Release {{ .release.tag_name }} {{ $action }}
{{- else if .zen }}Webhook added
{{- else if .build }}Pages {{ .build.status }}
{{- else if .context }}{{ .context }} {{ .state }}
{{- else if .forkee }}{{ $who }} forked
{{- else if .ref_type }}{{ $who }} {{ if eq $event "delete" }}deleted{{ else }}created{{ end }} {{ .ref_type }} {{ .ref }}
{{- else if or .after .commits }}{{ $who }} ` + pushTitle + `
{{- else }}{{ default "GitHub" (capitalize (replace "_" " " $event)) }}{{ with $action }} {{ . }}{{ end }}{{ end }}
{{- with default .organization.login .repository.full_name }}: {{ . }}{{ end }}`,
			Body: `{{ if .workflow_run }}{{ with .workflow_run }}{{ .display_title }}
Branch: {{ .head_branch }}
{{ .html_url }}{{ end }}
{{- else if .workflow_job }}{{ with .workflow_job }}Branch: {{ .head_branch }}
{{ .html_url }}{{ end }}
{{- else if .check_run }}{{ .check_run.output.title }}
{{ .check_run.html_url }}
{{- else if .check_suite }}Branch: {{ .check_suite.head_branch }}
{{- else if .deployment_status }}{{ with .deployment_status.description }}{{ . }}
{{ end }}{{ with .deployment.ref }}Ref: {{ . }}
{{ end }}{{ default .deployment_status.log_url .deployment_status.target_url }}
{{- else if or .pull_request .issue .discussion }}{{ default (default .discussion.title .issue.title) .pull_request.title }}
{{- with default .review.body .comment.body }}
{{ cut 500 . }}{{ end }}
{{ default (default (default (default .discussion.html_url .issue.html_url) .pull_request.html_url) .review.html_url) .comment.html_url }}
{{- else if .release }}{{ .release.name }}
{{ .release.html_url }}
{{- else if .alert }}{{ with .alert }}{{ default (default (default (default .affected_package_name .secret_type)
	.secret_type_display_name) .rule.description) .security_advisory.summary }}
{{ default .external_reference .html_url }}{{ end }}
{{- else if .security_advisory }}{{ .security_advisory.summary }}
{{ .security_advisory.html_url }}
{{- else if .zen }}{{ .zen }}
{{- else if .context }}{{ with .description }}{{ . }}
{{ end }}{{ line .commit.commit.message }}
{{ default .commit.html_url .target_url }}
{{- else if .build }}{{ with .build.error.message }}{{ . }}
{{ end }}{{ .repository.html_url }}
{{- else if .comment }}{{ cut 500 .comment.body }}
{{ .comment.html_url }}
{{- else if .commits }}{{ range first 10 .commits }}{{ line .message }} ({{ .author.name }})
{{ end }}{{ with more 10 .commits }}and {{ . }} more
{{ end }}{{ .compare }}
{{- else if .pages }}{{ range first 10 .pages }}{{ .title }} {{ .action }}
{{ end }}{{ .repository.html_url }}/wiki
{{- else }}{{ with default .membership.user.login .member.login }}{{ . }}
{{ end }}{{ with .sender.login }}by {{ . }}
{{ end }}{{ .repository.html_url }}{{ end }}`,
			Type: `{{ if .workflow_run }}{{ type .workflow_run.conclusion }}
{{- else if .workflow_job }}{{ type .workflow_job.conclusion }}
{{- else if .check_run }}{{ type .check_run.conclusion }}
{{- else if .check_suite }}{{ type .check_suite.conclusion }}
{{- else if .deployment_status }}{{ type .deployment_status.state }}
{{- else if .alert }}{{ if eq .action "fixed" "resolved" "resolve" "dismissed" "dismiss" "auto_dismissed" "closed_by_user" "revoked"
	}}success
	{{- else if eq .action "assignees_changed" "updated_assignment" }}info
	{{- else }}{{ default "warning" (type (default (default .alert.severity .alert.rule.security_severity_level)
	.alert.security_advisory.severity)) }}{{ end }}
{{- else if .security_advisory }}{{ if ne .action "withdrawn" }}{{ type .security_advisory.severity }}{{ end }}
{{- else if .build }}{{ type .build.status }}
{{- else if .context }}{{ type .state }}{{ end }}`,
			// A later run on the same branch resolves the incident of an earlier one.
			Incident: `{{ $repository := .repository.full_name -}}
{{ if .workflow_run }}{{ $repository }} workflow {{ default .workflow_run.name .workflow_run.workflow_id }} {{ .workflow_run.head_branch }}
{{- else if .workflow_job }}{{ $repository }} job {{ .workflow_job.workflow_name }} {{ .workflow_job.name }} {{ .workflow_job.head_branch }}
{{- else if .check_run }}{{ $repository }} check {{ .check_run.name }} {{ .check_run.check_suite.head_branch }}
{{- else if .check_suite }}{{ $repository }} checks {{ .check_suite.app.slug }} {{ .check_suite.head_branch }}
{{- else if .deployment_status }}{{ $repository }} deployment {{ .deployment_status.environment }}
{{- else if or .pull_request .issue }}{{ $repository }} {{ default .issue.number .pull_request.number }}
{{- else if .alert }}{{ $repository }} {{ header "X-GitHub-Event" }} {{ .alert.number }}
{{- else if .security_advisory }}{{ .security_advisory.ghsa_id }}
{{- else if .context }}{{ $repository }} status {{ .context }} {{ (index .branches 0).name }}{{ end }}`,
		},
	})
}
