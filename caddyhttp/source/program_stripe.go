package source

func init() {
	register(Format{
		Name:    "stripe",
		Program: "Stripe",
		Doc:     "https://docs.stripe.com/api/events/object",
		Scheme:  schemeStripe,
		Templates: Templates{
			Title: `{{ default "Stripe" .type }}`,
			Body: `{{ with .data.object }}{{ .object }} {{ .id }}
{{ with default (default (default .customer .billing_details.email) .receipt_email) .customer_email }}Customer: {{ . }}
{{ end }}
{{- with default .amount .amount_due }}Amount: {{ . }} {{ upper $.data.object.currency }} (smallest unit)
{{ end }}
{{- with default .last_payment_error.message .failure_message }}{{ . }}
{{ end }}
{{- .hosted_invoice_url }}{{ end }}
{{- if eq .livemode false }}
This is test data.{{ end }}`,
			Type: `{{ if hasSuffix "failed" .type }}failure{{ else if hasSuffix "dispute.created" .type }}warning{{ else }}info{{ end }}`,
		},
	})
}
