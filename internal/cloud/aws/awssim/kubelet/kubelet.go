package kubelet

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/awssim"
)

// Cluster is what the user data of a machine that joins it must say.
type Cluster struct {
	Name      string
	Endpoint  string // URL
	Authority string // PEM in base64
}

// Kubelets are those of all instances. It is the Hook of a simulated AWS.
type Kubelets struct {
	// Client of the cluster that instances join.
	Client  client.Client
	Cluster Cluster
	// Log is told, in a sentence, what could not be done; it may be nil.
	Log func(string)

	mu      sync.Mutex
	refused map[string]string
	gone    map[string]bool // instances that have ended
}

var _ awssim.Hook = (*Kubelets)(nil)

const (
	// answerTime bounds one request to the API server; a kubelet repeats it mostTries times, after a pause each.
	answerTime = 10 * time.Second
	mostTries  = 600
	retryAfter = 500 * time.Millisecond
)

// Booted implements awssim.Hook: the instance's node registers, or never will. It does not wait for that.
func (k *Kubelets) Booted(i awssim.Instance) {
	config, err := Read(i.ImageFamily, i.UserData)
	if err == nil {
		err = joins(i, config, k.Cluster)
	}
	if err != nil {
		k.refuse(i, err)
		return
	}
	go k.repeat("registering node "+i.PrivateDNSName, func(ctx context.Context) error {
		if k.ended(i.ID) {
			return nil
		}
		if err := k.register(ctx, i, config); err != nil {
			return err
		}
		if k.ended(i.ID) { // while we registered
			return k.remove(ctx, i)
		}
		return nil
	})
}

// register makes the instance's Node. A name is that of an address: the Node of an earlier instance may still be there.
func (k *Kubelets) register(ctx context.Context, i awssim.Instance, config Config) error {
	err := k.Client.Create(ctx, nodeOf(i, config))
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	before := &corev1.Node{}
	if err := k.Client.Get(ctx, client.ObjectKey{Name: i.PrivateDNSName}, before); err != nil {
		return err
	}
	if before.Spec.ProviderID != providerID(i) {
		return fmt.Errorf("there is a node of that name, of %s", before.Spec.ProviderID)
	}
	return nil
}

// Gone implements awssim.Hook: the node of an instance that has ended is deleted, as the cloud's controller manager does.
func (k *Kubelets) Gone(i awssim.Instance) {
	k.mu.Lock()
	if k.gone == nil {
		k.gone = map[string]bool{}
	}
	k.gone[i.ID] = true
	k.mu.Unlock()
	go k.repeat("deleting node "+i.PrivateDNSName, func(ctx context.Context) error { return k.remove(ctx, i) })
}

func (k *Kubelets) remove(ctx context.Context, i awssim.Instance) error {
	node := &corev1.Node{}
	err := k.Client.Get(ctx, client.ObjectKey{Name: i.PrivateDNSName}, node)
	if err == nil && node.Spec.ProviderID == providerID(i) {
		err = k.Client.Delete(ctx, node, client.Preconditions{UID: &node.UID})
	}
	return client.IgnoreNotFound(err)
}

func (k *Kubelets) ended(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.gone[id]
}

// repeat does something until it succeeds, for a few minutes.
func (k *Kubelets) repeat(what string, do func(context.Context) error) {
	var err error
	for range mostTries {
		ctx, cancel := context.WithTimeout(context.Background(), answerTime)
		err = do(ctx)
		cancel()
		if err == nil {
			return
		}
		<-time.After(retryAfter)
	}
	k.log(fmt.Sprintf("%s: %v", what, err))
}

func (k *Kubelets) refuse(i awssim.Instance, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.refused == nil {
		k.refused = map[string]string{}
	}
	k.refused[i.ID] = err.Error()
	k.log(fmt.Sprintf("instance %s will not join: %v", i.ID, err))
}

func (k *Kubelets) log(text string) {
	if k.Log != nil {
		k.Log(text)
	}
}

// Refused says of instances that booted and did not join why, by id.
func (k *Kubelets) Refused() map[string]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.refused)
}
