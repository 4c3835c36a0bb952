package sandbox

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is the validity of the certificates. It exceeds the life of any sandbox.
const validity = 10 * 365 * 24 * time.Hour

// clientSubjects are the identities of the components at the API server. The names are those that Kubernetes'
// built-in RBAC bindings expect
// (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#default-roles-and-role-bindings). kwok is an
// administrator, because it writes nodes and pods in place of every kubelet.
var clientSubjects = map[string]pkix.Name{
	"admin":           {CommonName: "sandbox-admin", Organization: []string{"system:masters"}},
	"kube-scheduler":  {CommonName: "system:kube-scheduler"},
	controllerManager: {CommonName: "system:kube-controller-manager"},
	kwok:              {CommonName: "sandbox-kwok", Organization: []string{"system:masters"}},
}

// ensureCertificates creates the sandbox's two certificate authorities (one for Kubernetes, one for etcd, so that no
// API client can connect to etcd), the certificates that they sign, and the key that signs service account tokens.
// Existing files are kept. The folder is created atomically.
func ensureCertificates(l layout) error {
	folder := l.path("pki")
	if _, err := os.Stat(folder); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	unfinished := folder + ".unfinished"
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	if err := os.MkdirAll(unfinished, 0o700); err != nil {
		return err
	}
	if err := writeCertificates(unfinished); err != nil {
		return err
	}
	return os.Rename(unfinished, folder)
}

func writeCertificates(folder string) error {
	kubernetes, err := newAuthority(folder, "ca", "sandbox")
	if err != nil {
		return err
	}
	etcd, err := newAuthority(folder, "etcd-ca", "sandbox-etcd")
	if err != nil {
		return err
	}
	if err := kubernetes.issue(folder, "server", pkix.Name{CommonName: "kube-apiserver"}); err != nil {
		return err
	}
	for name, subject := range clientSubjects {
		if err := kubernetes.issue(folder, name, subject); err != nil {
			return err
		}
	}
	for _, name := range []string{"etcd-server", "etcd-client"} {
		if err := etcd.issue(folder, name, pkix.Name{CommonName: name}); err != nil {
			return err
		}
	}
	return writeServiceAccountKey(folder)
}

type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(folder, file, name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := certificateTemplate(pkix.Name{CommonName: name})
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage |= x509.KeyUsageCertSign
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(signed)
	if err != nil {
		return nil, err
	}
	return &authority{certificate, key}, writePair(filepath.Join(folder, file), signed, key)
}

// issue writes <file>.crt and <file>.key. The certificate is valid for serving on the loopback address and for
// connecting as subject.
func (a *authority) issue(folder, file string, subject pkix.Name) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template, err := certificateTemplate(subject)
	if err != nil {
		return err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, net.ParseIP(firstServiceIP)}
	template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	signed, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return err
	}
	return writePair(filepath.Join(folder, file), signed, key)
}

func certificateTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    time.Now().Add(-time.Hour), // clocks of containers may lag
		NotAfter:     time.Now().Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}, nil
}

func writePair(path string, certificate []byte, key *ecdsa.PrivateKey) error {
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	if err := writePEM(path+".crt", "CERTIFICATE", certificate); err != nil {
		return err
	}
	return writePEM(path+".key", "EC PRIVATE KEY", encoded)
}

func writeServiceAccountKey(folder string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := writePEM(filepath.Join(folder, "service-account.key"), "EC PRIVATE KEY", private); err != nil {
		return err
	}
	return writePEM(filepath.Join(folder, "service-account.pub"), "PUBLIC KEY", public)
}

func writePEM(path, kind string, content []byte) error {
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
		return fmt.Errorf("writing a certificate: %w", err)
	}
	return nil
}
