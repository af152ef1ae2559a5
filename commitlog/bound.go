package commitlog

import ()

// putBound records durable and appended, without a sync. While a sync of the
// bound runs it only remembers them: a write would make the slot that is being
// synced one of unknown content, and a commit must not wait for that sync.
func (s *sidecar) putBound(durable, appended, window int64) error {
	epoch := uint32(s.epoch())
	s.boundMu.Lock()
	defer s.boundMu.Unlock()
	if s.bound.Durable == durable && s.bound.Appended == appended && s.bound.Window == window && s.bound.Epoch == epoch {
		return nil
	}
	s.bound.Durable, s.bound.Appended, s.bound.Window, s.bound.Epoch = durable, appended, window, epoch
	s.bound.Sequence++
	if _, err := s.bound.Encode(s.boundBuf[:]); err != nil {
		return err
	}
	if s.boundBusy {
		s.boundLate = true
		return nil
	}
	return s.boundFile.put(s.boundBuf[:])
}

// syncBound makes durable what putBound recorded before it was called.
func (s *sidecar) syncBound() error {
	s.boundSync.Lock()
	defer s.boundSync.Unlock()
	s.boundMu.Lock()
	if failed := s.boundFile.failed; failed != nil || !s.boundFile.dirty {
		s.boundMu.Unlock()
		return failed
	}
	s.boundBusy = true
	file := s.boundFile.file
	s.boundMu.Unlock()
	err := file.Datasync()
	s.boundMu.Lock()
	defer s.boundMu.Unlock()
	s.boundBusy = false
	if err != nil {
		s.boundFile.failed = err
		return err
	}
	s.boundFile.synced()
	if !s.boundLate {
		return nil
	}
	s.boundLate = false
	return s.boundFile.put(s.boundBuf[:])
}

// durableBound makes the bound durable and returns it.
func (s *sidecar) durableBound() (int64, error) {
	s.boundMu.Lock()
	durable := s.bound.Durable
	s.boundMu.Unlock()
	return durable, s.syncBound()
}

// rewriteBound writes the bound as it is to the other slot, durably.
func (s *sidecar) rewriteBound() error {
	s.boundMu.Lock()
	s.bound.Sequence++
	_, err := s.bound.Encode(s.boundBuf[:])
	if err == nil {
		err = s.boundFile.put(s.boundBuf[:])
	}
	s.boundMu.Unlock()
	if err != nil {
		return err
	}
	return s.syncBound()
}
