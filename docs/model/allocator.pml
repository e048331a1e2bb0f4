/* The transactions of Allocator over two servers, as PostgreSQL lets them interleave at READ COMMITTED. README.md in
   this folder says what each process and variable stands for, and how to run it.

   A statement is one atomic step, because it sees one snapshot; between two statements of a transaction anything may
   happen. Locks and index entries are seen by everybody at once; rows are seen when they are committed. */

/* --- Who plays ------------------------------------------------------------------------------------------------------ */

#define SALE    1 /* two orders, one of them converted, an operator, the sweep, a deadline */
#define KEYS    2 /* two requests of one order line, with one key or with two, and a stranger */
#define HOLD    3 /* everything that can be done with one hold, and an order that wants its server */
#define RECLAIM 4 /* two orders whose lines have dead holds, each on a server that the other may take, and the sweep */
#define RAW     5 /* a conversion, and somebody who inserts a hold without asking anybody */
#define PAIR    6 /* a conversion and an order: the least that can sell a server twice */
#ifndef CAST
#define CAST SALE
#endif

/* --- The wrong designs, each switched on with -D -------------------------------------------------------------------- */

#ifdef NO_REJUDGE /* a server is not judged again under its lock */
#define REJUDGES false
#else
#define REJUDGES true
#endif
#ifdef NO_OCCUPANCY /* the held index stands alone */
#define OCCUPANCY false
#else
#define OCCUPANCY true
#endif
#ifdef DEADLINE_BEFORE_LOCK /* a conversion looks at the clock before it waits for the locks */
#define LATE true
#else
#define LATE false
#endif
#ifdef SWEEP_BY_IDS /* the sweep reads what is due, and moves it by id afterwards */
#define BY_IDS true
#else
#define BY_IDS false
#endif
#ifdef NO_LAST_QUESTION /* key and order line are not asked again before a refusal */
#define ASKS_AGAIN false
#else
#define ASKS_AGAIN true
#endif
#ifdef ROW_BEFORE_SERVER /* a conversion locks the reservation before the server */
#define ROW_FIRST true
#else
#define ROW_FIRST false
#endif
#ifdef RECLAIM_WAITS /* an order waits for the row of a dead hold in its way */
#define WAITS true
#else
#define WAITS false
#endif
#ifdef RELEASE_AND_REWRITE /* a conversion gives the server free, commits, and takes it again */
#define RELEASES true
#else
#define RELEASES false
#endif
#ifdef TOKEN_BEFORE_LOCK /* a renewal looks at the token before it waits for the locks */
#define EARLY_TOKEN true
#else
#define EARLY_TOKEN false
#endif
#ifdef BUSY_IS_SOLD_OUT /* that no lock was to be had is called no_capacity */
#define BUSY_IS_NONE true
#else
#define BUSY_IS_NONE false
#endif

#ifdef AT_ONCE_WITHOUT_LOCK /* an attempt at once does not ask whether it has got the server's lock */
#define UNLOCKED true
#else
#define UNLOCKED false
#endif
#ifdef AT_ONCE_ASKS_NOTHING /* nor whether the key has a reservation, or the order line a server */
#define ASKS_NOTHING true
#else
#define ASKS_NOTHING false
#endif

/* --- The database --------------------------------------------------------------------------------------------------- */

#define SERVERS 2
#define ROWS    6 /* row r is made by transaction r; rows 4 and 5 are there from the beginning; 0 is no row */

mtype = { held, converted, expired, cancelled };

typedef Row {
  mtype state; /* 0 until the row's insert is committed */
  bit  server;
  byte key;
  byte line;
  bool passed; /* its deadline is over */
  byte token;  /* the generation whose token is good */
  byte lock    /* the transaction that has locked the row */
};
Row row[ROWS];

byte lock[SERVERS]; /* the transaction that has locked the server's row */
bool out[SERVERS];  /* not in the state ready */
bool bound[SERVERS];
bool promised[SERVERS]; /* its hold is being converted; for an assertion alone */

/* Unique indexes: the row whose entry stands, the transaction that is taking it out, the one that is putting one in. */
byte heldEntry[SERVERS], heldLeaving[SERVERS];
byte occEntry[SERVERS], occLeaving[SERVERS];
byte coming[SERVERS];

byte keyLock[5], lineLock[5]; /* advisory try-locks */

#define TAKEN(r)   (row[r].state != 0)
#define OF_KEY(k)  (TAKEN(1) && row[1].key == k -> 1 : (TAKEN(2) && row[2].key == k -> 2 : (TAKEN(3) && row[3].key == k -> 3 : 0)))
#define ON(r, l)   ((row[r].state == held || row[r].state == converted) && row[r].line == l)
#define OF_LINE(l) (ON(1, l) -> 1 : (ON(2, l) -> 2 : (ON(3, l) -> 3 : (ON(4, l) -> 4 : (ON(5, l) -> 5 : 0)))))
#define LIVE(r)    (row[r].state == converted || (row[r].state == held && !row[r].passed))
#define DEAD(r)    (row[r].state == held && row[r].passed)
#define HOLDS(r, m) (row[r].state == held && row[r].server == m -> 1 : 0)

/* --- What must hold ------------------------------------------------------------------------------------------------- */

inline audit(m) {
  assert(HOLDS(1, m) + HOLDS(2, m) + HOLDS(3, m) + HOLDS(4, m) + HOLDS(5, m) + (bound[m] -> 1 : 0) <= 1); /* one owner */
  assert(!(TAKEN(1) && TAKEN(2) && row[1].key == row[2].key)) /* one reservation of a key */
}

/* --- Steps of transactions; me is the transaction ------------------------------------------------------------------- */

/* The row leaves held, uncommitted: its entries wait to be gone. */
inline leave(r) {
  assert(DEAD(r) || row[r].state == held);
  heldLeaving[row[r].server] = me; occLeaving[row[r].server] = me
}

inline stay(r) { heldLeaving[row[r].server] = 0; occLeaving[row[r].server] = 0; row[r].lock = 0 }

inline gone(r, how) {
  row[r].state = how; heldEntry[row[r].server] = 0; occEntry[row[r].server] = 0; stay(r)
}

/* An insert meets the held index and then, through its trigger, the occupancy row. Each lets it pass, refuses it, or
   makes it wait for the transaction that is taking the entry out or putting one in. */
inline insert(m, refused) {
  if
  :: atomic { coming[m] == 0 && (heldEntry[m] == 0 || heldLeaving[m] == me) -> coming[m] = me }
  :: atomic { coming[m] == 0 && heldEntry[m] != 0 && heldLeaving[m] == 0 -> refused = true }
  fi;
  if
  :: refused || !OCCUPANCY
  :: atomic { !refused && OCCUPANCY && (occEntry[m] == 0 || occLeaving[m] == me) -> skip }
  :: atomic { !refused && OCCUPANCY && occEntry[m] != 0 && occLeaving[m] == 0 -> coming[m] = 0; refused = true }
  fi
}

inline publish(r, m, k, l) {
  row[r].state = held; row[r].server = m; row[r].key = k; row[r].line = l; row[r].token = 1;
  heldEntry[m] = r; occEntry[m] = r; coming[m] = 0;
  audit(m)
}

/* --- The processes -------------------------------------------------------------------------------------------------- */

/* One reservation request, DESIGN.md section 3: at once where nothing stands in the way, else the walk. */
proctype reserve(byte me; byte k; byte l; bool buys) {
  byte dead = 0, inway = 0; /* holds that this transaction has moved to expired */
  bool can[SERVERS], listed, refused;
  bit m;

  /* At once: one candidate of the catalog, which is a hint, so it may be any; all of it travels in one go. */
  if :: m = 0 :: m = 1 :: goto walks fi;
  atomic { /* the locks of key, line and server, each only if the one before was to be had */
    if :: keyLock[k] == 0 -> keyLock[k] = me; if :: lineLock[l] == 0 -> lineLock[l] = me; if :: lock[m] == 0 -> lock[m] = me :: else fi :: else fi :: else fi
  };
  atomic { if :: heldEntry[m] && DEAD(heldEntry[m]) && row[heldEntry[m]].lock == 0 -> inway = heldEntry[m]; row[inway].lock = me; leave(inway) :: else fi };
  atomic { /* judged by the statement that writes */
    refused = (lock[m] != me && !UNLOCKED) || out[m] || bound[m] || (heldEntry[m] != 0 && heldEntry[m] != inway);
    refused = refused || (!ASKS_NOTHING && (OF_KEY(k) || (OF_LINE(l) && OF_LINE(l) != inway)))
  };
  if
  :: !refused -> insert(m, refused);
     if :: atomic { refused && inway -> stay(inway); inway = 0 } :: else fi /* an index refused: ROLLBACK of everything */
  :: else
  fi;
  if
  :: atomic { !refused -> /* COMMIT */
       if :: inway -> gone(inway, expired); inway = 0 :: else fi;
       publish(me, m, k, l);
       assert(!out[m]); /* nobody sells what is out of service */
       if :: lock[m] == me -> lock[m] = 0 :: else fi; keyLock[k] = 0; lineLock[l] = 0;
       if :: buys -> run convert(me + 10, me) :: else fi;
       goto done
     }
  :: atomic { refused -> /* COMMIT of what was moved out of the way, if anything */
       if :: inway -> gone(inway, expired); inway = 0 :: else fi;
       refused = false;
       if :: lock[m] == me -> lock[m] = 0 :: else fi;
       if :: keyLock[k] == me -> keyLock[k] = 0 :: else fi;
       if :: lineLock[l] == me -> lineLock[l] = 0 :: else fi
     }
  :: atomic { !refused -> coming[m] = 0; if :: lock[m] == me -> lock[m] = 0 :: else fi; goto died } /* kill -9 */
  fi;

walks:
  atomic { m = 0; if :: OF_KEY(k) -> goto done :: else fi };
  atomic { if :: keyLock[k] == 0 -> keyLock[k] = me :: else -> goto refuse fi };
  atomic { if :: lineLock[l] == 0 -> lineLock[l] = me :: else -> goto refuse fi };
  atomic { if :: OF_KEY(k) -> goto answer :: else fi };
  atomic { dead = OF_LINE(l); if :: dead && LIVE(dead) -> dead = 0; goto answer :: else fi };
  if
  :: dead == 0
  :: atomic { dead && row[dead].lock == 0 -> /* this may wait */
       if :: DEAD(dead) -> row[dead].lock = me; leave(dead) :: else -> dead = 0 fi };
     if
     :: atomic { dead == 0 && (OF_KEY(k) || (OF_LINE(l) && LIVE(OF_LINE(l)))) -> goto answer }
     :: else
     fi
  fi;

  /* The list: what is held past its deadline counts as free, what is locked too. */
  d_step {
    m = 0;
    can[0] = !out[0] && !bound[0] && (heldEntry[0] == 0 || row[heldEntry[0]].passed);
    can[1] = !out[1] && !bound[1] && (heldEntry[1] == 0 || row[heldEntry[1]].passed);
    listed = can[0] || can[1];
    assert(!(can[0] && promised[0]) && !(can[1] && promised[1])) /* promoted, never released and rewritten */
  };
  if :: !listed -> goto refuse :: else fi;

walk:
  if
  :: atomic { can[0] -> can[0] = false; m = 0 }
  :: atomic { can[1] -> can[1] = false; m = 1 }
  :: atomic { !can[0] && !can[1] -> assert(listed && !BUSY_IS_NONE); goto refuse } /* contended: somebody was faster */
  fi;
  atomic { if :: lock[m] == 0 -> lock[m] = me :: else -> goto walk fi };
  if
  :: atomic { heldEntry[m] == 0 || heldEntry[m] == dead || !DEAD(heldEntry[m]) -> skip }
  :: atomic { heldEntry[m] != 0 && heldEntry[m] != dead && DEAD(heldEntry[m]) && row[heldEntry[m]].lock == 0 ->
       inway = heldEntry[m]; row[inway].lock = me; leave(inway) }
  :: atomic { !WAITS && heldEntry[m] != 0 && DEAD(heldEntry[m]) && row[heldEntry[m]].lock != 0 && row[heldEntry[m]].lock != me -> skip }
  fi;
  /* Judged again, in a statement of its own. */
  atomic {
    refused = REJUDGES && (out[m] || bound[m] || (heldEntry[m] != 0 && heldEntry[m] != dead && heldEntry[m] != inway));
    if :: refused -> goto letgo :: else fi
  };
  insert(m, refused);
  if :: refused -> goto letgo :: else fi;

  if
  :: atomic { /* COMMIT */
       if :: dead -> gone(dead, expired) :: else fi;
       if :: inway -> gone(inway, expired) :: else fi;
       publish(me, m, k, l);
       assert(!out[m]); /* nobody sells what is out of service */
       lock[m] = 0; keyLock[k] = 0; lineLock[l] = 0; dead = 0; inway = 0;
       if :: buys -> run convert(me + 10, me) :: else fi;
       goto done
     }
  :: atomic { coming[m] = 0; lock[m] = 0; goto died } /* kill -9 */
  fi;

letgo: /* ROLLBACK TO SAVEPOINT */
  atomic {
    lock[m] = 0; refused = false;
    if :: inway -> stay(inway); inway = 0 :: else fi;
    goto walk
  };

refuse: /* the last question, and the refusal with it */
  atomic {
    if
    :: ASKS_AGAIN && (OF_KEY(k) || (OF_LINE(l) && LIVE(OF_LINE(l)))) -> skip
    :: else -> assert(OF_KEY(k) == 0) /* whoever is refused has no reservation of that key */
    fi
  };
answer: /* COMMIT */
  atomic {
    if :: dead -> gone(dead, expired); dead = 0 :: else fi;
    if :: keyLock[k] == me -> keyLock[k] = 0 :: else fi;
    if :: lineLock[l] == me -> lineLock[l] = 0 :: else fi;
    goto done
  };
died:
  atomic {
    if :: inway -> stay(inway); inway = 0 :: else fi;
    if :: dead -> stay(dead); dead = 0 :: else fi;
    keyLock[k] = 0; lineLock[l] = 0
  };
done: skip
}

/* The locks of every change: the server row, then the reservation row. Each may wait. */
inline lockBoth(r) {
  atomic { lock[row[r].server] == 0 -> lock[row[r].server] = me };
  atomic { row[r].lock == 0 -> row[r].lock = me }
}

inline unlockBoth(r) { row[r].lock = 0; lock[row[r].server] = 0 }

/* The statement behind the locks: a dead hold is moved aside, and then there is nothing to change. */
inline readBehindLocks(r, refused) {
  atomic { if :: DEAD(r) -> leave(r); refused = true :: !DEAD(r) && row[r].state != held -> refused = true :: else fi }
}

/* The end of a change that was refused; what was moved aside is committed. */
inline commitRefusal(r) {
  atomic { if :: heldLeaving[row[r].server] == me -> gone(r, expired) :: else fi; unlockBoth(r) }
}

proctype convert(byte me; byte r) {
  bool fresh = true, refused;
  bit m;
  if :: LATE -> atomic { fresh = LIVE(r) } :: else fi;
  if
  :: ROW_FIRST ->
     atomic { row[r].lock == 0 -> row[r].lock = me };
     atomic { lock[row[r].server] == 0 -> lock[row[r].server] = me }
  :: else -> lockBoth(r)
  fi;
  m = row[r].server;
  if :: !LATE -> readBehindLocks(r, refused) :: LATE -> atomic { refused = row[r].state != held || !fresh } fi;
  if :: refused -> goto refusal :: else fi;
  if
  :: RELEASES -> atomic { gone(r, cancelled); promised[m] = true; unlockBoth(r) }; /* COMMIT: free for an instant */
     atomic { lock[m] == 0 && occEntry[m] == 0 -> bound[m] = true; occEntry[m] = r; promised[m] = false; row[r].state = converted };
     goto done
  :: else
  fi;
  atomic { /* the binding, with the deadline in the same statement */
    if
    :: !LATE && row[r].passed -> leave(r); goto refusal
    :: else -> assert(!row[r].passed) /* decided before the deadline */
    fi;
    heldLeaving[m] = me /* the occupancy row is moved in place: its entry stays */
  };
  if
  :: atomic { row[r].state = converted; bound[m] = true; heldEntry[m] = 0; heldLeaving[m] = 0; unlockBoth(r); audit(m) } /* COMMIT */
  :: atomic { heldLeaving[m] = 0; unlockBoth(r) } /* kill -9 */
  fi;
  goto done;
refusal:
  commitRefusal(r);
done: skip
}

proctype renew(byte me; byte r) {
  bool good = true, refused;
  if :: EARLY_TOKEN -> atomic { good = row[r].token == 1 } :: else fi;
  lockBoth(r);
  readBehindLocks(r, refused);
  if
  :: !refused && !EARLY_TOKEN -> atomic { good = row[r].token == 1 }
  :: else
  fi;
  if :: refused || !good -> goto refusal :: else fi;
  atomic { /* the new deadline, if the old one is still ahead */
    if :: row[r].passed -> leave(r); goto refusal :: else -> assert(row[r].token == 1) /* by who holds it now */ fi
  };
  atomic { row[r].passed = false; unlockBoth(r) }; /* COMMIT: the deadline that others see moves now */
  goto done;
refusal:
  commitRefusal(r);
done: skip
}

proctype takeOver(byte me; byte r) {
  bool refused;
  lockBoth(r);
  readBehindLocks(r, refused);
  if
  :: refused -> commitRefusal(r)
  :: else -> atomic { row[r].token++; unlockBoth(r) } /* COMMIT */
  fi
}

/* An operator takes a server out of service, plainly or by force. */
proctype takeOut(byte me; bit m) {
  byte r;
  bool force;
  if :: force = true :: force = false fi;
  atomic { lock[m] == 0 -> lock[m] = me };
  atomic { r = heldEntry[m]; if :: r && row[r].passed :: else -> r = 0 fi };
  if
  :: r == 0
  :: atomic { r && row[r].lock == 0 -> if :: DEAD(r) && row[r].server == m -> row[r].lock = me; leave(r) :: else -> r = 0 fi } /* may wait */
  fi;
  if
  :: atomic { (heldEntry[m] == 0 || heldEntry[m] == r) && !bound[m] -> skip }
  :: atomic { bound[m] -> if :: force :: else -> goto over fi } /* a binding stays, and is flagged */
  :: atomic { heldEntry[m] != 0 && heldEntry[m] != r -> if :: force :: else -> goto over fi; assert(r == 0); r = heldEntry[m] };
     atomic { row[r].lock == 0 -> if :: row[r].state == held -> row[r].lock = me; leave(r) :: else -> r = 0 fi } /* may wait */
  fi;
  atomic { out[m] = true };
over:
  atomic {
    if :: r -> if :: DEAD(r) -> gone(r, expired) :: else -> gone(r, cancelled) fi :: else fi;
    lock[m] = 0
  }
}

/* One batch: what is due and not locked is moved in one statement; nobody is waited for. */
proctype sweep(byte me) {
  byte r = 1;
  bool due[ROWS];
  d_step {
    do
    :: r < ROWS && DEAD(r) && (BY_IDS || row[r].lock == 0) ->
       due[r] = true;
       if :: BY_IDS :: else -> row[r].lock = me; leave(r) fi;
       r++
    :: r < ROWS && !(DEAD(r) && (BY_IDS || row[r].lock == 0)) -> r++
    :: r == ROWS -> break
    od
  };
  r = 1;
  do
  :: r < ROWS && due[r] ->
     if
     :: BY_IDS -> atomic { row[r].lock == 0 -> assert(DEAD(r)); gone(r, expired) } /* only what is dead is expired */
     :: else -> skip
     fi;
     r++
  :: r < ROWS && !due[r] -> r++
  :: r == ROWS -> break
  od;
  atomic { /* COMMIT */
    r = 1;
    do
    :: r < ROWS && due[r] && !BY_IDS -> assert(DEAD(r)); gone(r, expired); due[r] = false; r++
    :: r < ROWS && !(due[r] && !BY_IDS) -> r++
    :: r == ROWS -> break
    od
  }
}

/* Deadlines pass, at any moment, a few of them. */
proctype clock(byte ticks) {
  do
  :: atomic { ticks && row[1].state == held && !row[1].passed -> row[1].passed = true; ticks-- }
  :: atomic { ticks && row[2].state == held && !row[2].passed -> row[2].passed = true; ticks-- }
  :: atomic { ticks && row[4].state == held && !row[4].passed -> row[4].passed = true; ticks-- }
  :: break
  od
}

/* A person with psql inserts a hold without a lock and without a look. */
proctype raw(byte me; bit m) {
  bool refused;
  insert(m, refused);
  if :: refused :: else -> atomic { publish(me, m, me, me) } fi
}

inline given(r, m, l, isPassed) {
  row[r].state = held; row[r].server = m; row[r].line = l; row[r].passed = isPassed; row[r].token = 1; heldEntry[m] = r; occEntry[m] = r
}

init {
  atomic {
#if CAST == SALE
    run reserve(1, 1, 1, true); run reserve(2, 2, 2, false); run takeOut(31, 0); run sweep(32); run clock(1)
#elif CAST == KEYS
    if :: run reserve(2, 1, 1, false) :: run reserve(2, 2, 1, false) fi;
    run reserve(1, 1, 1, false); run reserve(3, 3, 3, false)
#elif CAST == HOLD
    given(4, 0, 4, false); out[1] = true;
    run convert(34, 4); run renew(35, 4); run takeOver(36, 4); run takeOut(31, 0); run sweep(32); run clock(2); run reserve(1, 1, 1, false)
#elif CAST == RECLAIM
    given(4, 0, 1, true); given(5, 1, 2, true);
    run reserve(1, 1, 1, false); run reserve(2, 2, 2, false); run sweep(32); run takeOut(31, 0)
#elif CAST == RAW
    given(4, 0, 4, false); out[1] = true;
    run convert(34, 4); run raw(3, 0); run reserve(1, 1, 1, false); run sweep(32); run clock(1)
#elif CAST == PAIR
    given(4, 0, 4, false); out[1] = true;
    run convert(34, 4); run reserve(1, 1, 1, false); run clock(1)
#endif
  };
  (_nr_pr == 1);
  d_step { /* nothing is left behind */
    assert(lock[0] == 0 && lock[1] == 0 && coming[0] == 0 && coming[1] == 0);
    assert(heldLeaving[0] == 0 && heldLeaving[1] == 0 && occLeaving[0] == 0 && occLeaving[1] == 0);
    assert(row[1].lock == 0 && row[2].lock == 0 && row[3].lock == 0 && row[4].lock == 0 && row[5].lock == 0);
    assert(keyLock[1] == 0 && keyLock[2] == 0 && keyLock[3] == 0 && lineLock[1] == 0 && lineLock[2] == 0 && lineLock[3] == 0)
  }
}
