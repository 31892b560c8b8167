package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "seerr",
		Program: "Seerr, Jellyseerr and Overseerr",
		Doc:     "https://docs.seerr.dev/using-seerr/notifications/webhook",
		Checked: "snapshot of 2026-02-28",
		Has:     []string{"notification_type", "event|subject", "media|request|issue|comment|extra?"},
		Tokens:  []source.TokenPlace{{Header: "Authorization"}},
		Templates: source.Templates{
			Title: `{{ default (default "Seerr" .notification_type) .event }}`,
			Body: `{{ with .subject }}{{ . }}
{{ end }}
{{- with .message }}{{ . }}
{{ end }}
{{- with .request.requestedBy_username }}Requested by {{ . }}
{{ end }}
{{- with .issue.reportedBy_username }}Reported by {{ . }}
{{ end }}
{{- with .comment.comment_message }}{{ $.comment.commentedBy_username }}: {{ . }}
{{ end }}
{{- range first 10 .extra }}{{ .name }}: {{ .value }}
{{ end }}`,
			Type: `{{ if eq .notification_type "MEDIA_FAILED" }}failure{{ else if eq .notification_type "MEDIA_AVAILABLE" "ISSUE_RESOLVED" ` +
				`}}success{{ else }}info{{ end }}`,
			Images: `{{ .image }}`,
			Incident: `{{ if .issue.issue_id }}issue {{ .issue.issue_id }}{{ else if .request.request_id }}request {{ .request.request_id ` +
				`}}{{ end }}`,
		},
	})
}
