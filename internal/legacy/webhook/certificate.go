package webhook

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"time"
)

// These are the validity periods of signed certificates. Each certificate is renewed when a third of its time is
// left, so that it ends before its authority does: an authority that is replaced has signed nothing that outlives a
// third of its own time.
const (
	authorityLife   = 3 * 365 * 24 * time.Hour
	certificateLife = 90 * 24 * time.Hour
	// ahead is how far the start of validity lies in the past, for clocks that differ.
	ahead = time.Hour
)

// material holds an authority and a certificate that it signed, as PEM.
type material struct {
	// bundle holds the certificates of all valid authorities, the newest first.
	bundle []byte
	// authorityKey is the key of the newest authority.
	authorityKey []byte
	certificate  []byte
	key          []byte
}

// renewed returns the material for a server with these names. Whatever is missing, invalid or about to end is created
// again. The result reports whether anything was.
func (m material) renewed(names []string, now time.Time) (material, bool, error) {
	authorities := validAuthorities(m.bundle, now)
	key, err := parseKey(m.authorityKey)
	changed := false
	if err != nil || len(authorities) == 0 || !signsFor(key, authorities[0]) || ends(authorities[0], now) {
		authority, made, err := newAuthority(now)
		if err != nil {
			return m, false, err
		}
		key, changed = made, true
		authorities = append([]*x509.Certificate{authority}, authorities...)
	}
	if !changed && m.serves(names, authorities, now) {
		return m, false, nil
	}
	next := m
	if next.authorityKey, err = keyPEM(key); err != nil {
		return m, false, err
	}
	next.bundle = nil
	for _, authority := range authorities {
		next.bundle = append(next.bundle, certificatePEM(authority.Raw)...)
	}
	// A new authority is published to the API server first. Certificates of an older one remain in use until they are
	// renewed.
	if !next.serves(names, authorities, now) {
		if next.certificate, next.key, err = signed(names, authorities[0], key, now); err != nil {
			return m, false, err
		}
	}
	return next, true, nil
}

// serves reports whether the certificate is valid for a server with these names, under one of the authorities, for
// some time.
func (m material) serves(names []string, authorities []*x509.Certificate, now time.Time) bool {
	pair, err := tls.X509KeyPair(m.certificate, m.key)
	if err != nil || ends(pair.Leaf, now) {
		return false
	}
	roots := x509.NewCertPool()
	for _, authority := range authorities {
		roots.AddCert(authority)
	}
	for _, name := range names {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now}); err != nil {
			return false
		}
	}
	return true
}

// ends reports whether at most a third of a certificate's time is left.
func ends(c *x509.Certificate, now time.Time) bool {
	return now.Before(c.NotBefore) || c.NotAfter.Sub(now) <= c.NotAfter.Sub(c.NotBefore)/3
}

func validAuthorities(bundle []byte, now time.Time) []*x509.Certificate {
	var valid []*x509.Certificate
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err == nil && c.IsCA && now.Before(c.NotAfter) {
			valid = append(valid, c)
		}
	}
	slices.SortStableFunc(valid, func(a, b *x509.Certificate) int { return b.NotBefore.Compare(a.NotBefore) })
	return valid
}

func signsFor(key crypto.Signer, authority *x509.Certificate) bool {
	public, ok := key.Public().(*ecdsa.PublicKey)
	return ok && public.Equal(authority.PublicKey)
}

func newAuthority(now time.Time) (*x509.Certificate, crypto.Signer, error) {
	key, serial, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "karpenter conversion authority " + now.UTC().Format(time.DateOnly)},
		NotBefore: now.Add(-ahead), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, fmt.Errorf("making an authority: %w", err)
	}
	authority, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("making an authority: %w", err)
	}
	return authority, key, nil
}

func signed(names []string, authority *x509.Certificate, by crypto.Signer, now time.Time) (certificate, key []byte, err error) {
	own, serial, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "karpenter conversion"}, DNSNames: names,
		NotBefore: now.Add(-ahead), NotAfter: now.Add(certificateLife),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority, own.Public(), by)
	if err != nil {
		return nil, nil, fmt.Errorf("making a certificate: %w", err)
	}
	key, err = keyPEM(own)
	return certificatePEM(der), key, err
}

func newKey() (crypto.Signer, *big.Int, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, fmt.Errorf("making a serial number: %w", err)
	}
	return key, serial, nil
}

func parseKey(text []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("reading a key: not PEM")
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

func keyPEM(key crypto.Signer) ([]byte, error) {
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("writing a key: it is a %T", key)
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("writing a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func certificatePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
