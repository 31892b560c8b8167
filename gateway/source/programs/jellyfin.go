package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "jellyfin",
		Program: "Jellyfin (webhook plugin)",
		Doc:     "https://github.com/jellyfin/jellyfin-plugin-webhook",
		Checked: "21",
		Has:     []string{"NotificationType|ServerName|ItemType"},
		Templates: source.Templates{
			Title: `{{ default "Jellyfin" .NotificationType }}{{ with default .PluginName .Name }}: {{ . }}{{ end }}{{ with .Year }} ({{ . ` +
				`}}){{ end }}`,
			Body: `{{ with .SeriesName }}{{ . }}{{ with $.SeasonNumber00 }} S{{ . }}{{ end }}{{ with $.EpisodeNumber00 }}E{{ . }}{{ end }}
{{ end }}
{{- with default .Username .NotificationUsername }}User: {{ . }}
{{ end }}
{{- with default .Client .ClientName }}Client: {{ . }}
{{ end }}
{{- with .DeviceName }}Device: {{ . }}
{{ end }}
{{- with .Artist }}Artist: {{ . }}
{{ end }}
{{- with .Album }}Album: {{ . }}
{{ end }}
{{- with .PluginVersion }}Version: {{ . }}
{{ end }}
{{- with .Overview }}{{ cut 1000 . }}
{{ end }}
{{- with .ServerName }}Server: {{ . }}{{ end }}`,
			Type: `{{ if eq .NotificationType "AuthenticationFailure" "UserLockedOut" "TaskCompletedFailure" "PluginInstallationFailed" ` +
				`"SubtitleDownloadFailure" }}warning{{ else }}info{{ end }}`,
		},
	})
}
