package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// These are the keys of the Secret.
const (
	keyBundle       = "ca.crt"
	keyAuthorityKey = "ca.key"
)

// mostConflicts is how often the Secret is read again because another replica wrote it.
const mostConflicts = 10

// keeper stores the material of one server in a Secret that all replicas share.
type keeper struct {
	client    client.Client
	namespace string
	name      string
	// names are the host names that the API server may use for the server.
	names []string
	now   func() time.Time
	// last is the content of the Secret when it was last seen.
	last atomic.Pointer[material]
	pair atomic.Pointer[tls.Certificate]
}

// ensure makes sure that the Secret contains material that is valid for some time, serves it from now on, and returns
// its bundle. Two concurrent replicas end with the same material: the second one finds the Secret changed and reads
// it again.
func (k *keeper) ensure(ctx context.Context) ([]byte, error) {
	for range mostConflicts {
		m, err := k.once(ctx)
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("keeping the webhook's certificate in the Secret %s/%s: %w", k.namespace, k.name, err)
		}
		pair, err := tls.X509KeyPair(m.certificate, m.key)
		if err != nil {
			return nil, fmt.Errorf("reading the webhook's certificate: %w", err)
		}
		k.last.Store(&m)
		k.pair.Store(&pair)
		return m.bundle, nil
	}
	return nil, fmt.Errorf("keeping the webhook's certificate in the Secret %s/%s: other clients changed it %d times", k.namespace,
		k.name, mostConflicts)
}

func (k *keeper) once(ctx context.Context) (material, error) {
	secret := &corev1.Secret{}
	err := k.client.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: k.name}, secret)
	if err != nil && !apierrors.IsNotFound(err) {
		return material{}, err
	}
	isNew := err != nil
	var had material
	if last := k.last.Load(); isNew && last != nil {
		had = *last // the Secret was deleted: the served material remains in use
	} else if !isNew {
		had = material{secret.Data[keyBundle], secret.Data[keyAuthorityKey], secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]}
	}
	m, changed, err := had.renewed(k.names, k.now())
	if err != nil || !changed && !isNew {
		return m, err
	}
	data := map[string][]byte{
		keyBundle: m.bundle, keyAuthorityKey: m.authorityKey, corev1.TLSCertKey: m.certificate, corev1.TLSPrivateKeyKey: m.key,
	}
	if isNew {
		secret = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: k.name, Labels: map[string]string{"app.kubernetes.io/managed-by": "karpenter"}},
			Type:       corev1.SecretTypeOpaque, Data: data, // as the chart creates it, where it cannot contain data yet
		}
		err := k.client.Create(ctx, secret)
		if apierrors.IsForbidden(err) {
			return m, fmt.Errorf("it does not exist, and the controller is not allowed to create it: the chart creates it (helm upgrade), or "+
				"kubectl create secret generic %s --namespace=%s: %w", k.name, k.namespace, err)
		}
		return m, err
	}
	secret.Data = data
	return m, k.client.Update(ctx, secret)
}

// certificate returns the server's certificate.
func (k *keeper) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	pair := k.pair.Load()
	if pair == nil {
		return nil, errors.New("there is no certificate yet")
	}
	return pair, nil
}
