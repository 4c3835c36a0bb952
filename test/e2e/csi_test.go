package e2e

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// These are the names of the stand-in. Pools whose pods use its volumes have the startup taint, like those of real
// drivers: pods must not be bound before the node's volume limit is known.
const (
	csiDriver = "csi.e2e.example.org"
	csiTaint  = "csi.e2e.example.org/agent-not-ready"
)

// csi is a stand-in for a CSI driver on nodes without a kubelet. It does the work of the driver's node plugin,
// provisioner and attacher, as far as the API shows it:
//
//	node registered        -> CSINode with a limit, kube-controller-manager may attach, then the startup taint is removed
//	claim, node selected   -> PersistentVolume in that node's zone; kube-controller-manager binds the two
//	VolumeAttachment       -> attached, and when it is deleted detached, unless the test holds that up
//	volume released        -> deleted
//
// All state is in the API, so that a round can be repeated at any time.
type csi struct {
	client.Client
	// limit is the volume limit of a node.
	limit int32

	mu   sync.Mutex
	last error
	// held keeps volumes attached.
	held bool
}

// hold sets whether volumes stay attached to their nodes.
func (d *csi) hold(held bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = held
}

// csiFinalizer keeps a VolumeAttachment until the volume is detached, like that of an external attacher.
const csiFinalizer = "external-attacher/csi-e2e-example-org"

// startCSI runs the stand-in until the test ends.
func startCSI(t *testing.T, c *cluster, limit int32) *csi {
	t.Helper()
	d := &csi{Client: c.Client, limit: limit}
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { d.run(ctx) })
	t.Cleanup(func() {
		stop()
		done.Wait()
		if t.Failed() && d.last != nil {
			t.Logf("the CSI stand-in's last error: %v", d.last)
		}
	})
	return d
}

func (d *csi) run(ctx context.Context) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		for _, round := range []func(context.Context) error{d.publish, d.provision, d.attach, d.detach, d.reclaim} {
			if err := round(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				d.mu.Lock()
				d.last = err
				d.mu.Unlock()
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// publish writes the volume limit of each node, and opens the node for pods.
func (d *csi) publish(ctx context.Context) error {
	var nodes corev1.NodeList
	if err := d.List(ctx, &nodes, client.MatchingLabels{karpv1.LabelRegistered: "true"}); err != nil {
		return err
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		waits := func(taint corev1.Taint) bool { return taint.Key == csiTaint }
		if !slices.ContainsFunc(node.Spec.Taints, waits) || node.DeletionTimestamp != nil {
			continue
		}
		if err := d.Create(ctx, d.csiNode(node)); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		base := node.DeepCopy()
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, waits)
		// As the kubelet declares for its node: kube-controller-manager attaches and detaches there.
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, "volumes.kubernetes.io/controller-managed-attach-detach", "true")
		if err := d.Patch(ctx, node, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
			return err
		}
	}
	return nil
}

func (d *csi) csiNode(node *corev1.Node) *storagev1.CSINode {
	return &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
			Name: csiDriver, NodeID: node.Name, TopologyKeys: []string{corev1.LabelTopologyZone},
			Allocatable: &storagev1.VolumeNodeResources{Count: new(d.limit)},
		}}},
	}
}

// provision creates the volumes of claims for which kube-scheduler has selected a node, in that node's zone.
func (d *csi) provision(ctx context.Context) error {
	var claims corev1.PersistentVolumeClaimList
	if err := d.List(ctx, &claims); err != nil {
		return err
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		name := claim.Annotations["volume.kubernetes.io/selected-node"]
		if name == "" || claim.Spec.VolumeName != "" || claim.Annotations["volume.kubernetes.io/storage-provisioner"] != csiDriver {
			continue
		}
		node := &corev1.Node{}
		if err := d.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
			return err
		}
		if err := d.Create(ctx, volumeFor(claim, node.Labels[corev1.LabelTopologyZone])); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

func volumeFor(claim *corev1.PersistentVolumeClaim, zone string) *corev1.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": csiDriver}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: claim.Spec.AccessModes, Capacity: claim.Spec.Resources.Requests, StorageClassName: *claim.Spec.StorageClassName,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: csiDriver, VolumeHandle: name}},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
			}}}},
		},
	}
}

// attach marks each attachment as done; kube-controller-manager creates and deletes them.
func (d *csi) attach(ctx context.Context) error {
	var attachments storagev1.VolumeAttachmentList
	if err := d.List(ctx, &attachments); err != nil {
		return err
	}
	for i := range attachments.Items {
		a := &attachments.Items[i]
		if a.Spec.Attacher != csiDriver || a.Status.Attached || a.DeletionTimestamp != nil {
			continue
		}
		base := a.DeepCopy()
		if controllerutil.AddFinalizer(a, csiFinalizer) {
			if err := d.Patch(ctx, a, client.MergeFrom(base)); err != nil {
				return err
			}
			base = a.DeepCopy()
		}
		a.Status.Attached = true
		if err := d.Status().Patch(ctx, a, client.MergeFrom(base)); err != nil {
			return err
		}
	}
	return nil
}

// detach removes the finalizer of the attachments that kube-controller-manager has deleted.
func (d *csi) detach(ctx context.Context) error {
	d.mu.Lock()
	held := d.held
	d.mu.Unlock()
	var attachments storagev1.VolumeAttachmentList
	if err := d.List(ctx, &attachments); err != nil || held {
		return err
	}
	for i := range attachments.Items {
		a := &attachments.Items[i]
		base := a.DeepCopy()
		if a.DeletionTimestamp == nil || !controllerutil.RemoveFinalizer(a, csiFinalizer) {
			continue
		}
		if err := d.Patch(ctx, a, client.MergeFrom(base)); err != nil {
			return err
		}
	}
	return nil
}

// reclaim deletes released volumes.
func (d *csi) reclaim(ctx context.Context) error {
	var volumes corev1.PersistentVolumeList
	if err := d.List(ctx, &volumes); err != nil {
		return err
	}
	for i := range volumes.Items {
		v := &volumes.Items[i]
		if v.Status.Phase != corev1.VolumeReleased || v.DeletionTimestamp != nil || v.Spec.CSI == nil || v.Spec.CSI.Driver != csiDriver {
			continue
		}
		if err := d.Delete(ctx, v); err != nil {
			return err
		}
	}
	return nil
}
