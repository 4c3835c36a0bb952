package kwok

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karpenter-go/karpenter/cloud"
)

// Machine implements cloud.Provider.
func (p *Provider) Machine(ctx context.Context, providerID string) (*cloud.Machine, error) {
	name, ours := machineOf(providerID)
	if !ours {
		return nil, notFound(providerID)
	}
	object, err := p.recordObject(ctx, name)
	if apierrors.IsNotFound(err) {
		return p.unadopted(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	return p.machineIn(ctx, object), nil
}

func notFound(providerID string) error {
	return fmt.Errorf("machine %q: %w", providerID, cloud.ErrNotFound)
}

// Machines implements cloud.Provider. A machine with a corrupted record is still a machine. Only its provider ID is
// known, which is enough to terminate it.
func (p *Provider) Machines(ctx context.Context) ([]cloud.Machine, error) {
	objects, err := p.recordObjects(ctx)
	if err != nil {
		return nil, err
	}
	machines := make([]cloud.Machine, 0, len(objects))
	for i := range objects {
		machines = append(machines, *p.machineIn(ctx, &objects[i]))
	}
	slices.SortFunc(machines, func(a, b cloud.Machine) int { return strings.Compare(a.ProviderID, b.ProviderID) })
	return machines, nil
}

func (p *Provider) recordObjects(ctx context.Context) ([]corev1.ConfigMap, error) {
	var page corev1.ConfigMapList
	var all []corev1.ConfigMap
	err := p.pages(ctx, "listing the records of machines", &page, func() {
		for i := range page.Items {
			page.Items[i].ManagedFields = nil
		}
		all = append(all, page.Items...)
	}, client.InNamespace(p.opts.Namespace), client.MatchingLabels{LabelRecord: "true"})
	return all, err
}

// machineIn returns the machine of a record.
func (p *Provider) machineIn(ctx context.Context, object *corev1.ConfigMap) *cloud.Machine {
	s, err := parse(object)
	if err != nil {
		log.FromContext(ctx).Error(err, "a machine's record cannot be read; only its name is known")
		name := namePrefix + strings.TrimPrefix(object.Name, recordPrefix)
		return &cloud.Machine{ProviderID: providerScheme + name, Created: object.CreationTimestamp.Time}
	}
	return s.machine()
}

// Terminate implements cloud.Provider. The first call already returns ErrNotFound: the machine is gone when its record
// is.
func (p *Provider) Terminate(ctx context.Context, providerID string) error {
	name, ours := machineOf(providerID)
	if !ours {
		return notFound(providerID)
	}
	unlock, err := p.lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	object, err := p.recordObject(ctx, name)
	if apierrors.IsNotFound(err) {
		if err := p.deleteNode(ctx, name); err != nil {
			return err
		}
		return notFound(providerID)
	}
	if err != nil {
		return err
	}
	s, err := parse(object)
	if err != nil { // only its name is known, which is enough to terminate it
		s = &stored{record: record{Name: name}, object: object}
	}
	if err := p.remove(ctx, s); err != nil {
		return err
	}
	return notFound(providerID)
}

// remove deletes the Node and then the record, so that the next call completes the removal after a crash in between. The
// caller holds the lock of the machine.
func (p *Provider) remove(ctx context.Context, s *stored) error {
	if err := p.deleteNode(ctx, s.Name); err != nil {
		return err
	}
	err := p.call(ctx, "deleting the record of machine "+s.Name, func(ctx context.Context) error {
		return p.opts.Client.Delete(ctx, s.object, client.Preconditions{UID: &s.object.UID})
	})
	return client.IgnoreNotFound(err)
}

// deleteNode requests the deletion of the machine's Node. It does nothing if the Node is being deleted and waits for
// its finalizers.
func (p *Provider) deleteNode(ctx context.Context, name string) error {
	node := &corev1.Node{}
	err := p.call(ctx, "reading node "+name, func(ctx context.Context) error {
		return p.opts.Reader.Get(ctx, types.NamespacedName{Name: name}, node)
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if node.DeletionTimestamp != nil || node.Spec.ProviderID != providerScheme+name || !p.ownsNode(node) {
		return nil
	}
	err = p.call(ctx, "deleting node "+name, func(ctx context.Context) error {
		return p.opts.Client.Delete(ctx, node, client.Preconditions{UID: &node.UID})
	})
	return client.IgnoreNotFound(err)
}

// lock serializes operations on one machine in this process. Machines that share a lock only wait for each other. The
// wait ends with ctx, because the holder of the lock may be waiting for a slow API server.
func (p *Provider) lock(ctx context.Context, name string) (unlock func(), err error) {
	hash := fnv.New32a()
	hash.Write([]byte(name))
	slot := p.locks[hash.Sum32()%uint32(len(p.locks))]
	select {
	case slot <- struct{}{}:
		return func() { <-slot }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for another action on machine %s: %w", name, ctx.Err())
	}
}
