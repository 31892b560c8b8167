package services

// uuid4 is the pattern of a random UUID (RFC 9562, section 5.4).
const uuid4 = `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`
