// Package mailto sends e-mail through SMTP servers, on request signed and
// encrypted with OpenPGP.
package mailto
