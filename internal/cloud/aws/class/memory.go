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

// memory is what need not be asked again for a while. Losing it costs calls and nothing else.
type memory struct {
	mu      sync.Mutex
	classes map[types.UID]*remembered
}

type remembered struct {
	generation int64
	looked     map[string]time.Time    // by condition
	key        [sha256.Size]byte       // of what passed the dry runs
	passed     time.Time               // zero for never
	bytes      int                     // of user data
	late       int                     // tries in a row for which EC2 did not know the instance profile
	warned     map[types.UID]time.Time // pools, when
}

func (m *memory) of(uid types.UID) *remembered {
	if m.classes == nil {
		m.classes = map[types.UID]*remembered{}
	}
	if m.classes[uid] == nil {
		m.classes[uid] = &remembered{looked: map[string]time.Time{}}
	}
	return m.classes[uid]
}

// looked says that what a condition is about has been looked for.
func (m *memory) looked(class *awsv1.EC2NodeClass, condition string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.of(class.UID)
	if c.generation != class.Generation {
		c.generation = class.Generation
		clear(c.looked)
	}
	c.looked[condition] = now
}

// lookedAt is when that was; zero for never as the class is now.
func (m *memory) lookedAt(class *awsv1.EC2NodeClass, condition string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.of(class.UID); c.generation == class.Generation {
		return c.looked[condition]
	}
	return time.Time{}
}

// tested says whether the dry runs of the same contents passed not too long ago.
func (m *memory) tested(uid types.UID, key [sha256.Size]byte, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.of(uid)
	return !c.passed.IsZero() && c.key == key && now.Sub(c.passed) < testedFor
}

func (m *memory) passed(uid types.UID, key [sha256.Size]byte, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.of(uid)
	c.key, c.passed = key, now
}

// weighed notes the bytes of user data, and returns those of before.
func (m *memory) weighed(uid types.UID, bytes int) (before int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.of(uid)
	before, c.bytes = c.bytes, bytes
	return before
}

// mostLate is how many tries in a row EC2 may not know a new instance profile before that is an error: about a minute. IAM
// says that changes take seconds to be seen.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html#troubleshoot_general_eventual-consistency
const mostLate = 6

// lateProfileError says that EC2 does not know a new instance profile yet.
type lateProfileError struct {
	again time.Duration // when it is worth another try
	err   error
}

func (e *lateProfileError) Error() string { return e.err.Error() }
func (e *lateProfileError) Unwrap() error { return e.err }

// onlyLate is the lateProfileError that err is, nil if there are others beside it.
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

// awaited is the error for an instance profile that EC2 does not know yet: after mostLate tries an error like any other.
func (m *memory) awaited(uid types.UID, err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.of(uid)
	if c.late++; c.late > mostLate {
		return err
	}
	return &lateProfileError{retry << (c.late - 1), err}
}

// arrived says that EC2 knows the instance profile.
func (m *memory) arrived(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(uid).late = 0
}

// warn says whether a pool is to be warned, and notes it.
func (m *memory) warn(uid, pool types.UID, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.of(uid)
	if c.warned == nil {
		c.warned = map[types.UID]time.Time{}
	}
	if at, before := c.warned[pool]; before && now.Sub(at) < warnedFor {
		return false
	}
	c.warned[pool] = now
	return true
}

func (m *memory) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.classes, uid)
}

// contents tell apart classes whose dry runs may differ: their spec, what was found, and the user data. The order of subnets
// changes with their free addresses and says nothing.
func contents(class *awsv1.EC2NodeClass, userData []byte) [sha256.Size]byte {
	subnets := map[string]bool{}
	for _, subnet := range class.Status.Subnets {
		subnets[subnet.ID] = true
	}
	text, err := json.Marshal([]any{class.Spec, subnets, class.Status.SecurityGroups, class.Status.AMIs, class.Status.InstanceProfile, userData})
	if err != nil {
		panic("hashing an EC2NodeClass: " + err.Error()) // it came as JSON
	}
	return sha256.Sum256(text)
}

func conditionOf(f *finding) status.Condition {
	return status.Condition{Type: awsv1.ConditionValidationSucceeded, Status: f.status, Reason: f.reason, Message: f.message}
}

// changedByOthers says whether there is something to do after an update: the status is our own doing, and looking at the class
// again because of it would be to ask EC2 without a pause.
func changedByOthers(e event.UpdateEvent) bool {
	before, after := e.ObjectOld, e.ObjectNew
	return before.GetGeneration() != after.GetGeneration() || before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations()) || !slices.Equal(before.GetFinalizers(), after.GetFinalizers())
}

// deletedClaim wakes the class of a claim that has gone: it may be waiting for it.
func deletedClaim(_ context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if claim, ok := e.Object.(*karpv1.NodeClaim); ok {
		if name, ours := classOf(claim); ours {
			queue.Add(requestFor(name))
		}
	}
}
