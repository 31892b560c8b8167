package programs

// Parts of the templates for a group of alerts. Grafana uses the format of Prometheus
// Alertmanager.
const (
	// alertsTitle is an expression for the name that the alerts share, or the labels of the group.
	alertsTitle = `(default (default "Alerts" (join ", " (pairs .groupLabels))) (default .commonLabels.alertname .groupLabels.alertname))`

	// alertObjects are the labels that identify the object of a Kubernetes alert. Its label
	// instance is often the exporter that reported it.
	alertObjects = `"persistentvolumeclaim" "horizontalpodautoscaler" "job_name" "daemonset" "statefulset" "deployment" "pod"`

	// alertNoise are labels that do not help to tell alerts apart.
	alertNoise = `"alertname" "severity" "prometheus" "prometheus_replica" "endpoint" "uid"`

	// alertLine prints an alert: its summary and description without the parts common to the group,
	// and its place unless the text has it. An alert without text has its place and the labels that
	// distinguish it from the others.
	alertLine = `{{- if and $several (not $.commonLabels.severity) }}{{ with .labels.severity }}, {{ cut 50 . }}{{ end }}{{ end }}: ` +
		`{{ if and $several (not $.commonLabels.alertname) }}{{ with .labels.alertname }}{{ cut 100 . }}: {{ end }}{{ end -}}
{{- $s := trim (cut 500 .annotations.summary) }}{{ if eq $s $summary }}{{ $s = "" }}{{ end -}}
{{- $d := trim (cut 500 (pick .annotations "description" "message")) }}{{ if eq $d $description }}{{ $d = "" }}{{ end -}}
{{- if and $s $d }}{{ if contains $s $d }}{{ $s = "" }}{{ else if contains $d $s }}{{ $d = "" }}{{ end }}{{ end -}}
{{- $text := print $s $d -}}
{{- $object := pick .labels ` + alertObjects + ` }}{{ $host := pick .labels "node" "instance" }}{{ $place := default .labels.namespace
	$host -}}
{{- if $object }}{{ $place = $object }}{{ with .labels.namespace }}{{ $place = print . "/" $object }}{{ end -}}
{{- else if and $host .labels.namespace }}{{ $place = print .labels.namespace ", " $host }}{{ end -}}
{{- if $text }}{{ cut $limit $s }}{{ if and $s $d }}
{{ end }}{{ cut $limit $d }}{{ if and $place (not (or (and $object (contains $object $text)) (and $host (contains $host $text)))) }} ({{
	cut 200 $place }}){{ end -}}
{{- else -}}
	{{- $common := "" }}{{ if $several }}{{ $common = $.commonLabels }}{{ end -}}
	{{- $labels := pairs .labels $common "namespace" "node" "instance" ` + alertObjects + ` ` + alertNoise + ` -}}
	{{- if and $labels (eq $object (pick $common ` + alertObjects + `)) (eq $host (pick $common "node" "instance")) }}{{ $place = "" }}{{
	end -}}
	{{- with $place }}{{ cut 200 . }}{{ if $labels }}, {{ end }}{{ end }}{{ cut $limit (join ", " $labels) -}}
	{{- if not (or $place $labels) }}{{ default "an alert without a name" .labels.alertname }}{{ end -}}
{{- end }}`

	// alertsList lists what the alerts have in common, then the firing ones with the runbook if it
	// differs from the one before, and the resolved ones.
	alertsList = `{{- $firing := without "status" "resolved" .alerts -}}
{{- $resolved := where "status" "resolved" .alerts -}}
{{- $several := gt (len .alerts) 1 -}}
{{- $limit := 500 }}{{ if gt (len .alerts) 5 }}{{ $limit = 250 }}{{ end -}}
{{- $summary := "" }}{{ $description := "" }}{{ $runbook := "" -}}
{{- if $several -}}
	{{- $summary = trim (cut 500 .commonAnnotations.summary) }}{{ $description = trim (cut 500 (pick .commonAnnotations "description"
	"message")) -}}
	{{- with $summary }}{{ . }}
{{ end }}{{ with $description }}{{ if ne . $summary }}{{ . }}
{{ end }}{{ end -}}
{{- end -}}
{{- range first 20 $firing }}Firing` + alertLine + `
{{ with pick .annotations "runbook_url" "runbook" }}{{ if and (ne . $runbook) (ne . (pick $.commonAnnotations "runbook_url" "runbook"))
	}}{{ $runbook = . }}Runbook: {{ cut 500 . }}
{{ end }}{{ end -}}
{{ if le (len $firing) 3 }}{{ with .silenceURL }}Silence: {{ . }}
{{ end }}{{ end -}}
{{ end -}}
{{- with more 20 $firing }}and {{ . }} more
{{ end -}}
{{- range first 10 $resolved }}Resolved` + alertLine + `
{{ end -}}
{{- with more 10 $resolved }}and {{ . }} more resolved
{{ end -}}
` + alertsLeftOut + `
{{- with pick .commonAnnotations "runbook_url" "runbook" }}Runbook: {{ cut 500 . }}
{{ end -}}`

	// alertsLeftOut says how many alerts a payload leaves out, and with what effect.
	alertsLeftOut = `{{- with .truncatedAlerts }}The sender left out {{ . }} more
{{- if eq $.status "resolved" }}, so this does not say that all is well{{ end }}
{{ end -}}`

	// alertsPartial reports whether a payload leaves alerts out.
	alertsPartial = `{{ with .truncatedAlerts }}{{ . }}{{ end }}`

	// alertsType is success if all alerts are resolved, and otherwise the type of the most severe
	// firing one.
	alertsType = `{{- if eq .status "resolved" }}success
{{- else if .commonLabels.severity }}{{ default "failure" (type .commonLabels.severity) }}
{{- else }}{{ $type := "" -}}
	{{- range first 1000 (without "status" "resolved" .alerts) }}{{ $t := default "failure" (type .labels.severity) -}}
		{{- if or (eq $t "failure") (eq $type "failure") }}{{ $type = "failure" }}{{ else if or (eq $t "warning") (not $type) }}{{ $type = $t
	}}{{ end -}}
	{{- end }}{{ default "failure" $type }}{{ end }}`

	alertsTag = `{{ .commonLabels.severity }}`

	// alertsOpen are the fingerprints of the firing alerts.
	alertsOpen = `{{ range first 101 (without "status" "resolved" .alerts) }}{{ .fingerprint }}
{{ end }}`
)
