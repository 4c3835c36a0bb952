package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/legacy/webhook"
)

// poolDefinition is the definition of the objects in the cases of v1beta1.
const poolDefinition = "nodepools." + karpv1.Group

// TestConversionByReplicas checks that two replicas convert v1beta1 behind one Service, in a cluster whose pools are
// stored in it. Reads and writes continue while the certificate and its CA are replaced, when the leader is killed,
// and while the other replica is replaced by a new process. The pools are rewritten once.
func TestConversionByReplicas(t *testing.T) {
	only(t)
	t.Parallel()
	r := newReplicas(t)
	r.storeOlder("kept-1", "kept-2", "traffic")
	leader := r.start("replica-1")
	await(t, patience, "the first replica to lead", r.leads(""))
	first := *r.lease(t).Spec.HolderIdentity
	standby := r.start("replica-2")
	r.lead(leader, standby)
	traffic := r.traffic("traffic")
	traffic.goesOn()

	r.renewAll(traffic, leader, standby)

	leader.kill()
	traffic.goesOn()
	await(t, patience, "the standby to lead", r.leads(first))
	third := r.start("replica-3")
	r.lead(standby, third)
	traffic.goesOn()
	if err := standby.stop(); err != nil {
		t.Error(err)
	}
	traffic.goesOn()

	await(t, 2*patience, "all pools to be stored in v1", r.storedIn("v1"))
	traffic.goesOn()
	traffic.end()
	t.Logf("%d rounds of writing and reading, %d refused; the longest time without a response was %s", traffic.rounds, traffic.refused, traffic.longest)
	if said := r.rewrites(); said != 1 {
		t.Errorf("the replicas have rewritten the pools %d times, want once", said)
	}
	for _, name := range []string{"kept-1", "kept-2"} {
		if got, err := r.weight(t.Context(), "v1", name); err != nil || got != 5 {
			t.Errorf("pool %s has weight %d (%v), and was written with 5", name, got, err)
		}
	}
}

// replicas are controllers with one Service.
type replicas struct {
	*stage
	road *road
	all  []*replica // in the order of their start

	mutex sync.Mutex
	ends  []int // the target ports of the Service; the first that responds is used
}

// replica is one of the controllers.
type replica struct {
	*controller
	webhook int
}

// newReplicas returns no controllers yet, on a cluster of their own. They end with the case, however it ends: after
// its objects are deleted, and before their cluster ends.
func newReplicas(t *testing.T) *replicas {
	t.Helper()
	c := ownCluster(t)
	r := &replicas{}
	t.Cleanup(func() {
		for _, p := range r.all {
			if !p.running() {
				continue
			}
			if err := p.stop(); err != nil {
				t.Error(err)
			}
		}
	})
	r.stage = newStage(t, c, "replicas")
	r.service()
	return r
}

// renewAll replaces the certificate, its CA, and the certificate again, which traffic must not notice.
func (r *replicas) renewAll(traffic *traffic, all ...*replica) {
	r.t.Helper()
	whole := traffic.failures()
	r.renewCertificate(all...)
	newest := r.renewAuthority()
	traffic.goesOn()
	r.renewCertificate(all...)
	for _, p := range all {
		shown, err := p.shown(r.t.Context())
		if err != nil {
			r.t.Fatal(err)
		}
		if err := shown.CheckSignatureFrom(newest); err != nil {
			r.t.Errorf("the certificate is not signed by the new CA: %v", err)
		}
	}
	traffic.goesOn()
	if lost := traffic.failures() - whole; lost > 0 {
		r.t.Errorf("%d reads and writes were refused while the certificate was renewed, last: %v", lost, traffic.last())
	}
}

// rewrites counts how often a replica has logged that it has rewritten the pools.
func (r *replicas) rewrites() int {
	r.t.Helper()
	said := 0
	for _, p := range r.all {
		log, err := os.ReadFile(p.log)
		if err != nil {
			r.t.Fatal(err)
		}
		for line := range bytes.Lines(log) {
			if bytes.Contains(line, []byte("all objects are stored in v1 now")) && bytes.Contains(line, []byte(poolDefinition)) {
				said++
			}
		}
	}
	return said
}

// service creates the Service through which the API server reaches the replicas. It is a port of this machine.
func (r *replicas) service() {
	r.t.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "karpenter"}}
	service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}
	r.create(service)
	r.road = openRoad(r.t, func() (net.Conn, error) {
		r.mutex.Lock()
		ends := slices.Clone(r.ends)
		r.mutex.Unlock()
		err := errors.New("the Service has no endpoint")
		for _, port := range ends {
			var connection net.Conn
			if connection, err = net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
				return connection, nil
			}
		}
		return nil, err
	})
}

// lead connects the API server to the replicas, in this order. It ends existing connections.
func (r *replicas) lead(to ...*replica) {
	r.mutex.Lock()
	r.ends = nil
	for _, p := range to {
		r.ends = append(r.ends, p.webhook)
	}
	r.mutex.Unlock()
	r.road.block()
	r.road.open()
}

func (r *replicas) start(name string) *replica {
	r.t.Helper()
	ports, err := freePorts(1)
	if err != nil {
		r.t.Fatal(err)
	}
	r.mutex.Lock()
	r.ends = append(r.ends, ports[0])
	r.mutex.Unlock()
	_, port, err := net.SplitHostPort(r.road.address)
	if err != nil {
		r.t.Fatal(err)
	}
	p, err := startController(r.cluster, filepath.Join(artifacts, name+".log"), "--leader-election-lease=6s",
		"--karpenter-service=karpenter:"+port, "--webhook-port="+strconv.Itoa(ports[0]))
	if err != nil {
		r.t.Fatal(err)
	}
	started := &replica{p, ports[0]}
	r.all = append(r.all, started)
	r.cluster.controller = p
	await(r.t, patience, name+" to be ready", p.ready)
	return started
}

// leads fails until another replica than the given one leads.
func (r *replicas) leads(other string) func(context.Context) error {
	return func(ctx context.Context) error {
		lease := &coordinationv1.Lease{}
		if err := r.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "karpenter-leader-election"}, lease); err != nil {
			return err
		}
		if held := lease.Spec.HolderIdentity; held == nil || *held == "" || *held == other {
			return errors.New("no other replica leads")
		}
		return nil
	}
}

// definition reads the definition of pools.
func (r *replicas) definition(ctx context.Context) (client.Client, *apiextensionsv1.CustomResourceDefinition, error) {
	config, err := r.sandbox.Config()
	if err != nil {
		return nil, nil, err
	}
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, nil, err
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, nil, err
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	return api, definition, api.Get(ctx, client.ObjectKey{Name: poolDefinition}, definition)
}

// storeOlder stores pools in v1beta1, as controllers before v1 did.
func (r *replicas) storeOlder(names ...string) {
	r.t.Helper()
	r.store("v1beta1")
	for _, name := range names {
		older := &unstructured.Unstructured{}
		text := strings.ReplaceAll(`{apiVersion: karpenter.sh/v1beta1, kind: NodePool, metadata: {name: NAME, labels: {`+caseLabel+`: replicas}},
spec: {weight: 5, template: {spec: {nodeClassRef: {apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, name: replicas}, requirements: []}}}}`, "NAME", name)
		if err := yaml.Unmarshal([]byte(text), &older.Object); err != nil {
			r.t.Fatal(err)
		}
		// While v1 is the storage version, this needs a conversion, and no replica converts.
		await(r.t, patience, "a pool to be stored", func(ctx context.Context) error { return client.IgnoreAlreadyExists(r.Create(ctx, older.DeepCopy())) })
	}
	r.store("v1")
}

func (r *replicas) store(version string) {
	r.t.Helper()
	await(r.t, patience, "the definition to be changed", func(ctx context.Context) error {
		api, definition, err := r.definition(ctx)
		if err != nil {
			return err
		}
		for i := range definition.Spec.Versions {
			definition.Spec.Versions[i].Storage = definition.Spec.Versions[i].Name == version
		}
		return api.Update(ctx, definition)
	})
}

func (r *replicas) storedIn(version string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, definition, err := r.definition(ctx)
		if err == nil && !slices.Equal(definition.Status.StoredVersions, []string{version}) {
			err = fmt.Errorf("they are stored in %v", definition.Status.StoredVersions)
		}
		return err
	}
}

// forget removes entries from the Secret of the webhook's certificate, and makes the replicas read it.
func (r *replicas) forget(entries ...string) {
	r.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: webhook.SecretName}}
	r.patch(secret, `{"data":{"`+strings.Join(entries, `":null,"`)+`":null}}`)
	api, definition, err := r.definition(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	look := fmt.Sprintf(`{"metadata":{"annotations":{"e2e.example.org/look":%q}}}`, strings.Join(entries, " ")+" "+secret.ResourceVersion)
	if err := api.Patch(r.t.Context(), definition, client.RawPatch(types.MergePatchType, []byte(look))); err != nil {
		r.t.Fatal(err)
	}
}

// renewCertificate makes the replicas create another certificate, and waits until all serve it.
func (r *replicas) renewCertificate(all ...*replica) {
	r.t.Helper()
	var before *x509.Certificate
	await(r.t, patience, "a replica to show its certificate", func(ctx context.Context) (err error) {
		before, err = all[0].shown(ctx)
		return err
	})
	r.forget(corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	await(r.t, patience, "all replicas to show the same new certificate", func(ctx context.Context) error {
		var first *x509.Certificate
		for _, p := range all {
			now, err := p.shown(ctx)
			if err != nil {
				return err
			}
			if first == nil {
				first = now
			}
			if now.Equal(before) || !now.Equal(first) {
				return fmt.Errorf("port %d shows one of %s", p.webhook, now.NotBefore)
			}
		}
		return nil
	})
}

// renewAuthority makes the replicas create another CA, and waits until the API server knows both. It returns the new
// CA.
func (r *replicas) renewAuthority() *x509.Certificate {
	r.t.Helper()
	r.forget("ca.key")
	var newest *x509.Certificate
	await(r.t, patience, "the API server to be told of a second authority", func(ctx context.Context) error {
		_, definition, err := r.definition(ctx)
		if err != nil {
			return err
		}
		bundle := definition.Spec.Conversion.Webhook.ClientConfig.CABundle
		if n := bytes.Count(bundle, []byte("BEGIN CERTIFICATE")); n != 2 {
			return fmt.Errorf("it knows %d", n)
		}
		block, _ := pem.Decode(bundle)
		newest, err = x509.ParseCertificate(block.Bytes)
		return err
	})
	return newest
}

// shown returns the certificate that a replica serves.
func (p *replica) shown(ctx context.Context) (*x509.Certificate, error) {
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	connection, err := dialer.DialContext(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(p.webhook))
	if err != nil {
		return nil, fmt.Errorf("asking port %d for its certificate: %w", p.webhook, err)
	}
	defer connection.Close()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// weight returns the weight of a pool in a version.
func (r *replicas) weight(ctx context.Context, version, name string) (int64, error) {
	pool := poolIn(version, name)
	if err := r.Get(ctx, client.ObjectKeyFromObject(pool), pool); err != nil {
		return 0, fmt.Errorf("reading %s: %w", version, err)
	}
	weight, _, err := unstructured.NestedInt64(pool.Object, "spec", "weight")
	return weight, err
}

func poolIn(version, name string) *unstructured.Unstructured {
	pool := &unstructured.Unstructured{}
	pool.SetAPIVersion(karpv1.Group + "/" + version)
	pool.SetKind("NodePool")
	pool.SetName(name)
	return pool
}
