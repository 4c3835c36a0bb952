package class

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// checkResults holds results that need not be read again for a while. Losing it only costs calls.
type checkResults struct {
	mu      sync.Mutex
	classes map[types.UID]*classResults
}

type classResults struct {
	generation int64
	looked     map[string]time.Time // by condition
	key        [sha256.Size]byte    // hash of the contents that passed the dry runs
	passed     time.Time            // zero for never
	near       bool                 // the user data is near the limit of EC2
	late       int                  // consecutive tries in which EC2 did not know the instance profile
}

func (m *checkResults) of(uid types.UID) *classResults {
	if m.classes == nil {
		m.classes = map[types.UID]*classResults{}
	}
	if m.classes[uid] == nil {
		m.classes[uid] = &classResults{looked: map[string]time.Time{}}
	}
	return m.classes[uid]
}

// looked records that the resources of a condition have been read.
func (m *checkResults) looked(class *awsv1.EC2NodeClass, condition string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.of(class.UID)
	if c.generation != class.Generation {
		c.generation = class.Generation
		clear(c.looked)
	}
	c.looked[condition] = now
}

// lookedAt returns when that was, and zero if the current generation of the class has not been read yet.
func (m *checkResults) lookedAt(class *awsv1.EC2NodeClass, condition string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.of(class.UID); c.generation == class.Generation {
		return c.looked[condition]
	}
	return time.Time{}
}

// hasPassed reports whether the dry runs of the same contents passed recently.
func (m *checkResults) hasPassed(uid types.UID, key [sha256.Size]byte, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.of(uid)
	return !c.passed.IsZero() && c.key == key && now.Sub(c.passed) < testedFor
}

func (m *checkResults) passed(uid types.UID, key [sha256.Size]byte, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.of(uid)
	c.key, c.passed = key, now
}

// nearLimit stores whether the user data is near the limit of EC2, and returns the previous value.
func (m *checkResults) nearLimit(uid types.UID, near bool) (before bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.of(uid)
	before, c.near = c.near, near
	return before
}

// mostLate is the number of consecutive tries in which EC2 may not know a new instance profile before that is an error:
// about a minute. According to IAM, changes take seconds to become visible.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html#troubleshoot_general_eventual-consistency
const mostLate = 6

// lateProfileError means that EC2 does not know a new instance profile yet.
type lateProfileError struct {
	again time.Duration // when to try again
	err   error
}

func (e *lateProfileError) Error() string { return e.err.Error() }
func (e *lateProfileError) Unwrap() error { return e.err }

// onlyLate returns the lateProfileError in err, or nil if err has other errors as well.
func onlyLate(err error) *lateProfileError {
	for {
		joined, many := err.(interface{ Unwrap() []error })
		if !many {
			late, _ := err.(*lateProfileError)
			return late
		}
		if len(joined.Unwrap()) != 1 {
			return nil
		}
		err = joined.Unwrap()[0]
	}
}

// profileLate returns the error for an instance profile that EC2 does not know yet. After mostLate tries it is a
// regular error.
func (m *checkResults) profileLate(uid types.UID, err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.of(uid)
	if c.late++; c.late > mostLate {
		return err
	}
	return &lateProfileError{retry << (c.late - 1), err}
}

// profileFound records that EC2 knows the instance profile.
func (m *checkResults) profileFound(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(uid).late = 0
}

func (m *checkResults) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.classes, uid)
}

// contents returns a hash that differs for classes whose dry runs may differ: their spec, the resolved resources, and
// the user data. The order of subnets changes with their free addresses and is irrelevant.
func contents(class *awsv1.EC2NodeClass, userData []byte) [sha256.Size]byte {
	subnets := map[string]bool{}
	for _, subnet := range class.Status.Subnets {
		subnets[subnet.ID] = true
	}
	text, err := json.Marshal([]any{class.Spec, subnets, class.Status.SecurityGroups, class.Status.AMIs,
		class.Status.InstanceProfile, userData})
	if err != nil {
		panic("hashing an EC2NodeClass: " + err.Error()) // it was decoded from JSON
	}
	return sha256.Sum256(text)
}

func conditionOf(f *finding) status.Condition {
	return status.Condition{Type: awsv1.ConditionValidationSucceeded, Status: f.status, Reason: f.reason, Message: f.message}
}

// changedByOthers reports whether an update requires a reconciliation. Updates of the status are made by this
// controller, and reconciling because of them would call EC2 continuously.
func changedByOthers(e event.UpdateEvent) bool {
	before, after := e.ObjectOld, e.ObjectNew
	return before.GetGeneration() != after.GetGeneration() || before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations()) || !slices.Equal(before.GetFinalizers(), after.GetFinalizers())
}

// deletedClaim queues the class of a deleted claim, because the class may be waiting for it.
func deletedClaim(_ context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if claim, ok := e.Object.(*karpv1.NodeClaim); ok {
		if name, ours := classOf(claim); ours {
			queue.Add(requestFor(name))
		}
	}
}
