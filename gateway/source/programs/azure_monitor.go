package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "azure_monitor",
		Program: "Azure Monitor",
		Doc:     "https://learn.microsoft.com/en-us/azure/azure-monitor/alerts/alerts-common-schema",
		Checked: "2026-07-08",
		// Only the common alert schema has essentials.
		Has: []string{"schemaId", "data.essentials.monitorCondition|data.essentials.alertId", "schemaId=azureMonitorCommonAlertSchema?"},
		Templates: source.Templates{
			// A budget alert has no rule. Azure's notices about its own services are not about a
			// resource of the rule.
			Title: `{{ $e := .data.essentials }}{{ $c := .data.alertContext -}}
{{ if eq $e.monitoringService "ServiceHealth" }}{{ default "Service health" $c.properties.stage }}: {{ default $e.alertRule
	$c.properties.title }}
{{- else }}{{ default "Alert" $e.monitorCondition }}: {{ default (default $e.monitoringService $c.AlertData.BudgetName) $e.alertRule }}
	{{- with $e.configurationItems }}{{ if not (eq (index . 0) "budgets" $e.alertRule) }} on {{ index . 0 }}{{ with more 1 . }} and {{ .
	}} more{{ end }}{{ end }}{{ end }}
{{- end }}`,
			Body: `{{ $e := .data.essentials }}{{ $c := .data.alertContext }}{{ $p := $c.properties -}}
{{ with $e.description }}{{ . }}
{{ end }}
{{- with $c.annotations.summary }}{{ . }}
{{ end }}
{{- with $c.annotations.description }}{{ . }}
{{ end }}
{{- range first 5 $c.condition.allOf }}
	{{- default (default "Result" .metricMeasureColumn) .metricName }}{{ with .webTestName }} of {{ . }}{{ end }}: {{ .metricValue }} ({{
	with .timeAggregation }}{{ lower . }}, {{ end }}
	{{- if eq .operator "GreaterThan" }}limit{{ else if eq .operator "LessThan" "LowerThan" }}minimum{{ else }}{{ .operator }}{{ end }} {{
	.threshold }})
{{ range first 10 .dimensions }}{{ .name }}: {{ .value }}
{{ end }}{{ with .searchQuery }}Query: {{ cut 500 . }}
{{ end }}{{ end }}
{{- with $c.expression }}{{ . }}: {{ $c.expressionValue }}
{{ end }}
{{- with $c.labels }}{{ join ", " (pairs .) }}
{{ end }}
{{- with $c.SearchQuery }}Query: {{ cut 500 . }}
{{ $c.ResultCount }} results ({{ lower $c.Operator }} {{ $c.Threshold }})
{{ end }}
{{- with $c.operationName }}{{ if not $p.title }}{{ . }}{{ with $c.status }}: {{ . }}{{ end }}
{{ end }}{{ end }}
{{- with $c.caller }}By: {{ . }}
{{ end }}
{{- with $p.title }}{{ if ne $e.monitoringService "ServiceHealth" }}{{ . }}
{{ end }}{{ end }}
{{- with $p.communication }}{{ cut 1000 (plain .) }}
{{ end }}
{{- with $p.details }}{{ cut 1000 . }}
{{ end }}
{{- with $p.currentHealthStatus }}Health: {{ . }}{{ with $p.previousHealthStatus }} (before: {{ . }}){{ end }}
{{ end }}
{{- with $p.service }}Service: {{ . }}{{ with $p.region }}, {{ . }}{{ end }}{{ with $p.stage }} ({{ . }}){{ end }}
{{ end }}
{{- with $c.AlertData }}{{ .SpentAmount }} of {{ .BudgetThreshold }} spent{{ with .ForecastedTotalForPeriod }}, {{ . }} forecast{{ end }}
{{ end }}
{{- range first 10 (pairs .data.customProperties) }}{{ . }}
{{ end }}
{{- with $e.severity }}Severity: {{ . }}
{{ end }}
{{- $condition := index $c.condition.allOf 0 -}}
{{ with default (default $condition.linkToFilteredSearchResultsUI $c.LinkToFilteredSearchResultsUI) $e.investigationLink }}{{ . }}
{{- else }}{{ if contains "/Microsoft.AlertsManagement/alerts/" $e.alertId
	}}https://portal.azure.com/#blade/Microsoft_Azure_Monitoring/AlertDetailsTemplateBlade/alertId/{{ urlquery $e.alertId }}{{ end }}{{ end
	}}`,
			// Azure's notices about its own services and about a resource have no severity.
			Type: `{{ $e := .data.essentials }}{{ $p := .data.alertContext.properties -}}
{{ if eq $e.monitorCondition "Resolved" }}success
{{- else if eq $e.monitoringService "ServiceHealth" }}
	{{- if eq $p.stage "Resolved" "Complete" }}success{{ else if eq $p.incidentType "Incident" "Security" }}failure{{ else if eq
	$p.incidentType "ActionRequired" }}warning{{ else }}info{{ end }}
{{- else if $p.currentHealthStatus }}
	{{- if eq $p.currentHealthStatus "Available" }}success{{ else if eq $p.currentHealthStatus "Unavailable" }}failure{{ else }}warning{{ end
	}}
{{- else }}{{ default "warning" (type $e.severity) }}{{ end }}`,
			// A health event is an alert that fires again with another state.
			Incident: `{{ $e := .data.essentials }}{{ $p := .data.alertContext.properties -}}
{{ if eq $e.monitoringService "ServiceHealth" }}{{ with $p.trackingId }}service health {{ . }}{{ end }}
{{- else if $p.currentHealthStatus }}health {{ index $e.alertTargetIDs 0 }}
{{- else }}{{ $e.alertId }}{{ end }}`,
		},
	})
}
