// The interface of a list to its view.

export interface Listing {
  /** Handles a key; returns whether the list uses it. */
  key(event: KeyboardEvent): boolean;
  toTop(): void;
  /** The ID of the row under the cursor. */
  active: string | undefined;
}
