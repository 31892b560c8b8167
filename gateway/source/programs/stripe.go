package programs

import "github.com/caddy-notify/caddy-notify/gateway/source"

func init() {
	source.Register(source.Format{
		Name:    "stripe",
		Program: "Stripe",
		Doc:     "https://docs.stripe.com/api/events/object",
		Checked: "2026-07-29.dahlia",
		Has:     []string{"object", "type", "data.object|related_object"},
		Header:  "Stripe-Signature",
		Scheme:  source.SchemeStripe,
		Templates: source.Templates{
			Title: `{{ default "Stripe" .type }}`,
			Body: `{{ with .data.object }}{{ .object }} {{ .id }}
{{ with default (default (default (default .customer .customer_details.email) .billing_details.email) .receipt_email) .customer_email
	}}Customer: {{ . }}
{{ end }}
{{- with default (default .amount_total .amount) .amount_due }}Amount: {{ . }} {{ upper $.data.object.currency }} (smallest unit)
{{ end }}
{{- with default (default .last_finalization_error.message .last_payment_error.message) .failure_message }}{{ . }}
{{ end }}
{{- with .hosted_invoice_url }}{{ . }}
{{ end }}{{ end }}
{{- with .related_object }}{{ .type }} {{ .id }}
{{ end }}
{{- with .account }}Account: {{ . }}
{{ end }}
{{- if eq .livemode false }}This is test data.{{ end }}`,
			Type: `{{ if hasSuffix "failed" .type }}failure{{ else if hasSuffix "dispute.created" .type }}warning{{ else }}info{{ end }}`,
		},
	})
}
