package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

// Sonarr and Radarr have files of their own.
func init() {
	source.Register(source.Format{
		Name:    "lidarr",
		Program: "Lidarr",
		Doc:     "https://wiki.servarr.com/lidarr/settings#connect",
		Checked: "2.14.5",
		Has: []string{
			"eventType", "artist|album|albums|releaseTitle|level|message|newVersion|instanceName",
			"artist|album|albums|releaseTitle|instanceName=Lidarr?", "instanceName=Lidarr?",
		},
		Templates: source.Templates{
			Title: `{{ $album := default (index .albums 0) .album -}}
{{ with .artist.name }}{{ . }}{{ with $album.title }}: {{ . }}{{ end }}{{ with more 1 $.albums }} and {{ . }} more{{ end }}{{ else }}{{ default "Lidarr" .instanceName }}{{ end }}`,
			// The files of an album have the same quality.
			Body: servarrEvent + `
{{- with .tracks }}
{{ len . }} {{ if eq (len .) 1 }}track{{ else }}tracks{{ end }}{{ end -}}
{{- $file := "" }}{{ with .trackFile }}{{ $file = . }}{{ else }}{{ with .trackFiles }}
Quality: {{ (index . 0).quality }}{{ end }}{{ end -}}` + servarrDetails,
			Type: servarrType,
			Images: `{{ range .album.images }}{{ if eq .coverType "cover" }}{{ .remoteUrl }}
{{ end }}{{ end }}{{ range .artist.images }}` + servarrPoster,
			Incident: servarrIncident,
		},
	})
	source.Register(source.Format{
		Name:    "readarr",
		Program: "Readarr",
		Doc:     "https://wiki.servarr.com/readarr/settings#connections",
		Checked: "0.3.21",
		Has: []string{
			"eventType", "author|book|books|level|message|newVersion|instanceName",
			"author|book|books|instanceName=Readarr?", "instanceName=Readarr?",
		},
		// Readarr does not tell the end of a health issue, so nothing would resolve an
		// incident.
		Templates: source.Templates{
			Title: `{{ $book := default (index .books 0) .book -}}
{{ with .author.name }}{{ . }}{{ with $book.title }}: {{ . }}{{ end }}{{ with more 1 $.books }} and {{ . }} more{{ end }}{{ else }}{{ default "Readarr" .instanceName }}{{ end }}`,
			Body: servarrEvent + `
{{- $file := default (index .bookFiles 0) .bookFile }}` + servarrDetails,
			Type: servarrType,
		},
	})
	source.Register(source.Format{
		Name:    "prowlarr",
		Program: "Prowlarr",
		Doc:     "https://wiki.servarr.com/prowlarr/settings#notifications",
		Checked: "2.3.5",
		Has: []string{
			"eventType", "release|level|message|newVersion|instanceName",
			"trigger|host|instanceName=Prowlarr?", "instanceName=Prowlarr?",
		},
		Templates: source.Templates{
			Title: `{{ default (default "Prowlarr" .instanceName) .release.releaseTitle }}`,
			Body: servarrEvent + `
{{- with .source }} by {{ . }}{{ with $.host }} ({{ . }}){{ end }}{{ end -}}
{{- with .message }}
{{ . }}{{ end -}}
{{- with .release.categories }}
Category: {{ join ", " . }}{{ end -}}
{{- with .release.size }}
Size: {{ size . }}{{ end -}}
{{- with .release.indexer }}
Indexer: {{ . }}{{ end -}}
{{- with .wikiUrl }}
{{ . }}{{ end }}`,
			Type:     servarrType,
			Incident: servarrIncident,
		},
	})
	// Version 2 has the fields of Sonarr without numbers of episodes, version 3 those of
	// Radarr.
	source.Register(source.Format{
		Name:    "whisparr",
		Program: "Whisparr",
		Doc:     "https://wiki.servarr.com/whisparr/settings#connect",
		Checked: "2.0.0 of 2024-04-08 and 3.0.0 of 2024-10-14",
		Has: []string{
			"eventType", "series|episodes|movie|remoteMovie|level|message|newVersion|instanceName",
			"series|episodes|movie|remoteMovie|instanceName=Whisparr?", "instanceName=Whisparr?",
		},
		Templates: source.Templates{
			Title: `{{ default (default (default "Whisparr" .instanceName) .movie.title) .series.title }}`,
			Body: servarrEvent + `
{{- range first 20 .episodes }}
{{ with .airDate }}{{ . }} {{ end }}{{ .title }}{{ end -}}
{{- with more 20 .episodes }}
and {{ . }} more{{ end -}}
{{- $file := default .movieFile .episodeFile }}` + servarrDetails,
			Type:     servarrType,
			Incident: servarrIncident,
		},
	})
}
