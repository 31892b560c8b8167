package source

func init() {
	register(Format{
		Name:    "github",
		Program: "GitHub",
		Doc:     "https://docs.github.com/en/webhooks/webhook-events-and-payloads",
		Field:   "payload",
		Scheme:  schemeGitHub,
		Templates: Templates{
			Title: `{{ $event := capitalize (replace "_" " " (header "X-GitHub-Event")) -}}
{{ if .workflow_run }}{{ .workflow_run.name }} {{ default (default .action .workflow_run.status) .workflow_run.conclusion }}
{{- else if .workflow_job }}{{ .workflow_job.name }} {{ default (default .action .workflow_job.status) .workflow_job.conclusion }}
{{- else if .check_run }}{{ .check_run.name }} {{ default (default .action .check_run.status) .check_run.conclusion }}
{{- else if .check_suite }}Checks {{ default (default .action .check_suite.status) .check_suite.conclusion }}
{{- else if .deployment_status }}Deployment to {{ .deployment_status.environment }} {{ .deployment_status.state }}
{{- else if .pull_request }}Pull request {{ .pull_request.number }} {{ if .pull_request.merged }}merged{{ else }}{{ .action }}{{ end }}
{{- else if .issue }}Issue {{ .issue.number }} {{ if .comment }}commented{{ else }}{{ .action }}{{ end }}
{{- else if .release }}Release {{ .release.tag_name }} {{ .action }}
{{- else if .alert }}{{ $event }} {{ .action }}
{{- else if .zen }}Webhook added
{{- else if .commits }}{{ default "Somebody" (default .sender.login .pusher.name) }} pushed to {{ replace "refs/heads/" "" .ref }}
{{- else }}{{ default "GitHub" $event }} {{ .action }}{{ end }}
{{- with .repository.full_name }}: {{ . }}{{ end }}`,
			Body: `{{ if .workflow_run }}{{ with .workflow_run }}{{ .display_title }}
Branch: {{ .head_branch }}
{{ .html_url }}{{ end }}
{{- else if .workflow_job }}{{ with .workflow_job }}Branch: {{ .head_branch }}
{{ .html_url }}{{ end }}
{{- else if .check_run }}{{ .check_run.output.title }}
{{ .check_run.html_url }}
{{- else if .check_suite }}Branch: {{ .check_suite.head_branch }}
{{- else if .deployment_status }}{{ .deployment_status.description }}
{{ default .deployment_status.log_url .deployment_status.target_url }}
{{- else if .pull_request }}{{ .pull_request.title }}
{{ .pull_request.html_url }}
{{- else if .issue }}{{ .issue.title }}
{{- with .comment.body }}
{{ cut 500 . }}{{ end }}
{{ default .issue.html_url .comment.html_url }}
{{- else if .release }}{{ .release.name }}
{{ .release.html_url }}
{{- else if .alert }}{{ with .alert }}{{ default (default (default .secret_type_display_name .rule.description) .security_advisory.summary) .affected_package_name }}
{{ .html_url }}{{ end }}
{{- else if .zen }}{{ .zen }}
{{- else if .commits }}{{ range first 10 .commits }}{{ line .message }} ({{ .author.name }})
{{ end }}{{ with more 10 .commits }}and {{ . }} more
{{ end }}{{ .compare }}
{{- else }}{{ with .sender.login }}by {{ . }}
{{ end }}{{ .repository.html_url }}{{ end }}`,
			Type: `{{ if .workflow_run }}{{ type .workflow_run.conclusion }}
{{- else if .workflow_job }}{{ type .workflow_job.conclusion }}
{{- else if .check_run }}{{ type .check_run.conclusion }}
{{- else if .check_suite }}{{ type .check_suite.conclusion }}
{{- else if .deployment_status }}{{ type .deployment_status.state }}
{{- else if .alert }}{{ if eq .action "fixed" "resolved" "dismissed" "auto_dismissed" "closed_by_user" }}success{{ else }}{{ default "warning" (type (default .alert.security_advisory.severity .alert.rule.security_severity_level)) }}{{ end }}{{ end }}`,
		},
	})
}
