// What a view may ask of a list.

export interface Listing {
  /** Takes a key; says whether it meant something there. */
  key(event: KeyboardEvent): boolean;
  toTop(): void;
  /** The id of the row that the cursor is on. */
  active: string | undefined;
}
